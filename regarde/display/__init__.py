"""What a command shows a person at a terminal: progress, tables."""
