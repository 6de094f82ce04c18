"""Models of other toolkits in, ours out: one file for each format, and one line in formats.py."""
