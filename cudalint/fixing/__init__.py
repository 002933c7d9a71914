"""Repairing files: rounds of checking and applying until nothing is left to do, and writing without loss."""
