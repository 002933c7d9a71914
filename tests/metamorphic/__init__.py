"""Metamorphic tests: programs are changed in ways whose effect is known, and cudalint must follow."""
