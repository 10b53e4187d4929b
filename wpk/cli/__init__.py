"""The command line: one module a command, light until a command runs."""
