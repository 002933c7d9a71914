"""Which repairs a rule has, the preferred ones first."""

from __future__ import annotations

from cudalint.fixes import devices, loaders, queries, ranks, start_method
from cudalint.fixes.proposal import Repair

_REPAIRS: dict[str, tuple[Repair, ...]] = {
    "CUD101": (queries.count_instead, start_method.spawn),
    "CUD102": (queries.count_instead, start_method.spawn),
    "CUD103": (queries.count_instead, start_method.spawn),
    "CUD104": (queries.count_instead, start_method.spawn),
    "CUD106": (start_method.guard,),
    "CUD108": (start_method.same_context,),
    "CUD204": (devices.select_instead,),
    "CUD301": (start_method.spawn,),
    "CUD401": (queries.count_instead, start_method.spawn),
    "CUD402": (start_method.spawn,),
    "CUD403": (loaders.no_pinning,),
    "CUD501": (ranks.select_first,),
    "CUD502": (ranks.select_first,),
    "CUD504": (ranks.select_first,),
    "CUD505": (ranks.rendezvous,),
}


# Only where a program fails on every path can a change of it be safe; for all other rules it never is.
_SAFE = frozenset({"CUD101", "CUD401", "CUD403", "CUD404"})


def may_be_safe(code: str) -> bool:
    """Whether a repair of a rule can be proven to be safe."""
    return code in _SAFE


def repairs(code: str) -> tuple[Repair, ...]:
    """The repairs of a rule."""
    return _REPAIRS.get(code, ())
