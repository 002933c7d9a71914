"""Reports of a measurement: a table for people, json, junit, markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from cudalint.report import junit
from cudalint.verify.evidence import Place, head
from cudalint.verify.facts.compare import Measured
from cudalint.verify.report import Format, where


def render(measured: Sequence[Measured], place: Place, output_format: Format, seconds: float) -> str:
    """The whole report, ending with a newline."""
    if output_format is Format.JSON:
        return json.dumps({**head(place), "expressions": [_entry(one) for one in measured]}, indent=1) + "\n"
    if output_format is Format.JUNIT:
        return junit.render(f"cudalint --verify --models, {where(place)}", map(_case, measured))
    return "\n".join(_lines(measured, place, seconds, marked=output_format is Format.MARKDOWN)) + "\n"


def _case(one: Measured) -> junit.Case:
    failure = "\n".join(one.differences) or None
    return junit.Case(one.expression.text, one.framework, failure=failure, skipped=one.why_not or None)


def _entry(one: Measured) -> dict[str, Any]:
    return {
        "framework": one.framework,
        "expression": one.expression.text,
        "seen": {key: value for key, value in one.seen.items() if key != "expression"},
        "differences": list(one.differences),
        "contradictions": list(one.contradictions),
        "new": one.expression.is_new,
        **({"not run": one.why_not} if one.why_not else {}),
    }


def _lines(measured: Sequence[Measured], place: Place, seconds: float, marked: bool) -> Iterator[str]:
    sections = (
        ("Differs from what is recorded", [(one, one.differences) for one in measured]),
        ("The models say otherwise", [(one, one.contradictions) for one in measured]),
        ("Nothing was recorded of", [(one, (one.news,) if one.news else ()) for one in measured]),
    )
    for title, found in sections:
        chosen = [(one, told) for one, told in found if told]
        if not chosen:
            continue
        yield f"## {title}\n" if marked else f"{title}:"
        for one, told in chosen:
            yield from (f"{'- ' if marked else '  '}{one.framework}: {one.expression.text}: {text}" for text in told)
        yield ""
    for reason, count in Counter(one.why_not for one in measured if one.why_not).most_common():
        yield f"not run: {count} ({reason})"
    yield where(place)
    yield f"{summary(measured)} ({seconds:.0f} s)"


def summary(measured: Sequence[Measured]) -> str:
    """Everything counted, on one line."""
    ran = [one for one in measured if not one.why_not]
    different = sum(bool(one.differences) for one in ran)
    new = sum(one.expression.is_new for one in ran)
    agreed = sum(not one.contradictions for one in ran)
    counts = [f"{len(ran) - different - new} as recorded", f"{different} differ"]
    counts += [f"{new} new"] if new else []
    return (
        f"{len(measured)} expressions: {', '.join(counts)}, {len(measured) - len(ran)} not run; "
        f"the models agree with this machine on {agreed} of {len(ran)}"
    )
