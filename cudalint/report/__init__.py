"""Findings as text: for people, for other tools, for code review."""
