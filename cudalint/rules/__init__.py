"""The rules, one module per code; nothing is imported before it is asked for."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, ModuleType

from cudalint.rules.base import RepairLevel, Rule

__all__ = ["RepairLevel", "Rule", "codes", "page", "registry", "rule"]

_PREFIX = "cud"


@cache
def codes() -> tuple[str, ...]:
    """The codes of all rules in order, read from the names of their modules."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.upper() for name in names if name.startswith(_PREFIX)))


@cache
def rule(code: str) -> Rule:
    """The rule of a known code; imports that rule alone."""
    found: object = getattr(_module(code), "RULE", None)
    if not isinstance(found, Rule):
        raise TypeError(f"the module of {code} has no RULE")
    return found


def page(code: str) -> str:
    """The page of a known code: the docstring of its module."""
    return (_module(code).__doc__ or "").strip()


@cache
def registry() -> Mapping[str, Rule]:
    """All rules by code."""
    return MappingProxyType({code: rule(code) for code in codes()})


def _module(code: str) -> ModuleType:
    if code not in codes():
        raise KeyError(code)
    return importlib.import_module(f"{__name__}.{code.lower()}")
