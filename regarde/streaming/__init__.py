"""Text in and out of a command: lines read, answered and written, one by one."""
