"""Builtins and the standard library: values, functions, classes, the environment."""
