"""cudalint finds where CUDA and processes collide in Python programs."""

__version__ = "0.1.0"
