"""Command lines: options and commands of a program."""
