"""The project as a git revision had it: its files out of git's objects, and what was found there."""
