"""Where cudalint is run from: the command line, flake8."""
