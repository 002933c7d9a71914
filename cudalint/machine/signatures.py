"""Whether a function takes what it is given: where it does not, Python raises ``TypeError`` before anything runs."""

from __future__ import annotations

from collections.abc import Collection

from cudalint.ir import nodes as ir

_VARIABLE = frozenset({ir.ParamKind.VAR_POSITIONAL, ir.ParamKind.VAR_KEYWORD})


def refuses(params: tuple[ir.Param, ...], given: int, named: Collection[str]) -> bool:
    """Whether a function with these parameters takes neither so many arguments nor such names."""
    kinds = {param.kind for param in params}
    by_place = [param.name for param in params if param.kind is ir.ParamKind.POSITIONAL]
    unnamed = {param.name for param in params if param.unnamed}
    known = {param.name for param in params if param.kind not in _VARIABLE} - unnamed
    taken = set(by_place[:given])
    if given > len(by_place) and ir.ParamKind.VAR_POSITIONAL not in kinds:
        return True
    if not known.issuperset(named) and ir.ParamKind.VAR_KEYWORD not in kinds:
        return True
    if not (taken - unnamed).isdisjoint(named):
        return True
    wanted = {param.name for param in params if param.kind not in _VARIABLE and param.default is None}
    return not wanted <= taken.union(known.intersection(named))


def lacking(params: tuple[ir.Param, ...], given: int, named: Collection[str]) -> list[str]:
    """The parameters without a default that a call has yet to name."""
    by_place = [param.name for param in params if param.kind is ir.ParamKind.POSITIONAL]
    taken = {*by_place[:given], *named}
    wanted = (p for p in params if p.kind not in _VARIABLE and p.default is None and not p.unnamed)
    return [param.name for param in wanted if param.name not in taken]


def refused_by_record(fields: list[tuple[str, bool]], by_name: bool, given: int, named: Collection[str]) -> bool:
    """The same of an ``__init__`` that was made of fields, each with whether it has a default.

    ``by_name``: they are only taken by their names.
    """
    names = [name for name, _ in fields]
    taken = set(names[:given])
    if given > (0 if by_name else len(names)) or not set(names).issuperset(named) or not taken.isdisjoint(named):
        return True
    return any(not has_default and name not in taken and name not in named for name, has_default in fields)
