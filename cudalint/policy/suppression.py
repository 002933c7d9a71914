"""What suppression comments silence, and which of them silence nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Span, Step, StepKind
from cudalint.policy.identity import TWINS
from cudalint.rules import rule
from cudalint.structs import Frozen
from cudalint.text.itself import reads_itself
from cudalint.text.lines import Rows
from cudalint.text.noqa import Noqa, Suppressions, without_codes

UNUSED = "CUD902"
# Comments cannot be told from text in a file that was not read as a program.
_UNSUPPRESSIBLE = frozenset({"CUD900", "CUD901", UNUSED})
# So many codes of one comment are named in a message.
_MOST_NAMED = 4
_TWINS = TWINS | {other: one for one, other in TWINS.items()}


class Verdict(Frozen):
    """The findings that stay, and for every comment, by its file and place, the codes it silenced."""

    kept: tuple[Finding, ...]
    used: frozenset[tuple[str, tuple[int, int], str]]


def apply(findings: Iterable[Finding], comments: Callable[[str], Suppressions]) -> Verdict:
    """Drop what a comment silences; ``comments`` gives those of a file."""
    kept: list[Finding] = []
    used: set[tuple[str, tuple[int, int], str]] = set()
    for finding in findings:
        filename = finding.span.filename
        hits = list(_silencers(finding, comments(filename))) if is_silenceable(finding.code) else []
        used.update((filename, noqa.place, prefix) for noqa, prefix in hits)
        if not hits:
            kept.append(finding)
    return Verdict(tuple(kept), frozenset(used))


def is_silenceable(code: str) -> bool:
    """Whether a comment can silence findings of a rule."""
    return code not in _UNSUPPRESSIBLE


def unused(
    filename: str,
    text: str,
    comments: Suppressions,
    verdict: Verdict,
    is_judged: Callable[[str], bool],
    is_named: Callable[[], bool],
) -> Iterator[Finding]:
    """A finding for each comment with cudalint codes that silenced nothing.

    ``is_named`` says whether another file names this one, which it may read.
    """
    found = [
        (noqa, idle)
        for noqa in comments.comments
        if (idle := [p for p in noqa.codes if is_judged(p) and (filename, noqa.place, p) not in verdict.used])
    ]
    if not found:
        return
    rows, is_read = Rows(text), reads_itself(text) or is_named()
    for noqa, idle in found:
        yield _unused_finding(filename, text, rows, noqa, idle, is_read)


def _silencers(finding: Finding, comments: Suppressions) -> Iterator[tuple[Noqa, str]]:
    """The comments that silence ``finding``, each with the prefix that does; empty for a bare one."""
    first, last = finding.noqa_rows or (finding.span.start.row, finding.span.start.row)
    own = range(first, last + 1)
    rows = own if len(own) < len(comments.by_row) else comments.by_row
    on_rows = [comments.by_row[row] for row in rows if row in own and row in comments.by_row]
    names = tuple(code for code in (finding.code, _TWINS.get(finding.code)) if code is not None)
    for noqa in (*comments.whole_file, *on_rows):
        if not noqa.codes:
            yield noqa, ""
        for prefix in noqa.codes:
            if any(name.startswith(prefix) for name in names):
                yield noqa, prefix


def _unused_finding(filename: str, text: str, rows: Rows, noqa: Noqa, idle: Sequence[str], is_read: bool) -> Finding:
    unused_rule = rule(UNUSED)
    comment = Span(filename, Position(noqa.row, noqa.column), Position(noqa.row, noqa.column + len("# noqa")))
    named, one = _listed(idle), len(idle) == 1
    return Finding(
        code=unused_rule.code,
        name=unused_rule.name,
        severity=unused_rule.severity,
        message=f"the noqa on line {noqa.row} names {named}, which {'reports' if one else 'report'} nothing there",
        span=comment,
        trace=(Step(comment, f"{named} {'silences' if one else 'silence'} nothing here", StepKind.STEP, "main"),),
        fix=Fix(
            Applicability.UNSAFE if is_read else Applicability.SAFE,
            f"remove {named} from the comment",
            (_without(filename, text, rows, noqa, idle),),
            reason="the program may read its own text, with its comments" if is_read else None,
        ),
    )


def _listed(codes: Sequence[str]) -> str:
    """The codes as a sentence names them, of many the first."""
    if len(codes) == 1:
        return codes[0]
    if len(codes) > _MOST_NAMED:
        return f"{', '.join(codes[:_MOST_NAMED])} and {len(codes) - _MOST_NAMED:,} others"
    return f"{', '.join(codes[:-1])} and {codes[-1]}"


def _without(filename: str, text: str, rows: Rows, noqa: Noqa, idle: Iterable[str]) -> Edit:
    """The edit that takes codes out of a comment, and the comment away where it says nothing else."""
    start, end, content = without_codes(text, rows.offset(noqa.row, noqa.column), frozenset(idle))
    return Edit(Span(filename, Position(*rows.place(start)), Position(*rows.place(end))), content)
