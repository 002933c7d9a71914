"""A configuration as it is shown: in the words of pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint import caching
from cudalint.config import LIMITS, Config


def lines(found: Config) -> Iterable[str]:
    """The tables' keys with the values that hold, and where they come from."""
    lowest, highest = (".".join(map(str, version)) for version in found.target_versions)
    layers = found.selection.layers
    yield f"# from {found.source}" if found.source else "# no pyproject.toml: all defaults"
    unmarked = "# no project root: what named files import from beside them is read too"
    yield f"# project root: {found.root}" if found.root else unmarked
    yield f"select = {_toml_list((layers[0].select if layers else None) or ('ALL',))}"
    yield f"extend-select = {_toml_list(layers[0].extend_select if layers else ())}"
    yield f"ignore = {_toml_list(layers[0].ignore if layers else ())}"
    ignores = ", ".join(f"{_toml(pattern)} = {_toml_list(codes)}" for pattern, codes in found.per_file_ignores)
    yield f"per-file-ignores = {{{ignores}}}"
    yield f"exclude = {_toml_list(found.exclude)}"
    yield f"force-exclude = {str(found.force_exclude).lower()}"
    yield f"target-version = {_toml(lowest if lowest == highest else f'{lowest}-{highest}')}"
    yield f"platform = {_toml(found.platform)}"
    yield f"fail-on = {_toml(found.fail_on.value)}"
    severities = ", ".join(f"{_toml(name)} = {_toml(value.value)}" for name, value in found.severity)
    yield f"severity = {{{severities}}}"
    limits = ((key, getattr(found.limits, key.replace("-", "_"))) for key in LIMITS)
    yield f"limits = {{{', '.join(f'{key} = {value}' for key, value in limits if value is not None)}}}"
    yield f"models = {_toml_list(found.models)}"
    yield f"extra-paths = {_toml_list(found.extra_paths)}"
    yield f"extend-safe-fixes = {_toml_list(found.extend_safe_fixes)}"
    yield f"extend-unsafe-fixes = {_toml_list(found.extend_unsafe_fixes)}"
    yield f"baseline = {_toml(found.baseline or '')}"
    yield f"cache-dir = {_toml(caching.folder(found))}"


def _toml_list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_toml, values))}]"


def _toml(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
