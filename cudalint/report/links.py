"""Where reports send their readers: the addresses of ``[project.urls]`` in pyproject.toml, which a test compares."""

from __future__ import annotations

# Where the project lives. A fork that publishes its own changes both here and there.
HOME = "https://github.com/cudalint/cudalint"
# The site that mkdocs builds.
DOCUMENTATION = "https://cudalint.github.io/cudalint/"


def rule(code: str) -> str:
    """The page of a rule on the site."""
    return f"{DOCUMENTATION}rules/{code}/"
