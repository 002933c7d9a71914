"""What cudalint costs, beside reading the same bytes and beside ruff. `python -m bench` from `tests/`."""
