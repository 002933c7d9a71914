"""Fuzzing: programs of many origins, and properties that hold for whatever cudalint is given."""
