"""Whether the tests notice when a rule, a model or an effect changes (`python -m mutation`, from `tests/`)."""
