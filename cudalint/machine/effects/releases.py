"""What a function does in some releases of its package only: those that the project's files admit decide."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine import questions
from cudalint.machine.frame import Call
from cudalint.machine.interpreter import Machine
from cudalint.models.releases import Admitted, Releases, parsed
from cudalint.structs import replace


def apart(machine: Machine, call: Call) -> list[tuple[Call, bool]]:
    """A call once for each entry whose releases are admitted, and whether there is one for it.

    A project that says nothing has the newest release. What older ones do that it asks for is assumed.
    """
    entries = _entries(call.spec)
    ranges = [parsed(str(spec["releases"])) for spec in entries]
    known = [one for one in ranges if one is not None]
    return _split(call, entries, ranges, machine.program.admitted(known[0].package))


def _split(
    call: Call, entries: list[Mapping[str, object]], ranges: list[Releases | None], admitted: Admitted
) -> list[tuple[Call, bool]]:
    """The call for each part of what is admitted that other entries are about: the oldest first."""
    end = _first_decisive(ranges, admitted)
    if end is None:
        return [_newest(call, entries, ranges, admitted)]
    question = (questions.BEFORE, admitted.package, end)
    before = call.state.fact(question)
    # The copy is made before anything is assumed.
    other = call.state.clone() if before is None else call.state
    result: list[tuple[Call, bool]] = []
    if before is not False:
        call.state.assume(question, True)
        result.append(_newest(call, entries, ranges, replace(admitted, highest=end, includes=False)))
    if before is not True:
        other.assume(question, False)
        result.extend(_split(replace(call, state=other), entries, ranges, replace(admitted, lowest=end)))
    return result


def _entries(spec: Mapping[str, object]) -> list[Mapping[str, object]]:
    """What is said of a name, of the newest releases last."""
    others = spec.get("others")
    return [*(others if isinstance(others, tuple) else ()), spec]


def _first_decisive(ranges: list[Releases | None], admitted: Admitted) -> tuple[int, ...] | None:
    """The first end of a range on both sides of which there are releases that are admitted."""
    ends = {end for one in ranges if one is not None for end in (one.first, one.end) if end}
    return min((end for end in ends if admitted.may_be_before(end) and not admitted.are_before(end)), default=None)


def _newest(
    call: Call, entries: list[Mapping[str, object]], ranges: list[Releases | None], admitted: Admitted
) -> tuple[Call, bool]:
    """The call by what is said of the newest release that is admitted."""
    for spec, one in zip(entries, ranges, strict=True):
        begins = one is not None and not admitted.are_before(one.first)
        if one is not None and begins and (one.end is None or admitted.are_before(one.end)):
            return replace(call, spec=spec), True
    return call, False
