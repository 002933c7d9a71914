"""What a release rests on: every version that `pyproject.toml` names, and files that can be built again."""
