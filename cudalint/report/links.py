"""Where reports send their readers."""

from __future__ import annotations

# Where this copy of the repository lives, as in README.md; a fork that publishes its own changes it here.
HOME = "https://example.org/cudalint"


def rule(code: str) -> str:
    """The page of a rule: its module begins with it."""
    return f"{HOME}/blob/main/cudalint/rules/{code.lower()}.py"
