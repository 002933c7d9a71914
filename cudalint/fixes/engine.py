"""Finds a repair for a finding: proposals are made, tried out on the machine, and carried on until they hold.

A proposal counts only if the changed program, analysed again, no longer has the finding and has no error that it
did not have before. What still stands in its way is repaired in turn: a queue that must move to the same context,
a main guard that spawn needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import libcst as cst

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span, StepKind
from cudalint.fixes.catalogue import may_be_safe, repairs
from cudalint.fixes.edits import Change, apply, as_edits, between, ended_as, images
from cudalint.fixes.formatted import fitted, has_formatted
from cudalint.fixes.proposal import Case, Proof, Proposal
from cudalint.fixes.spawn_safety import joined, spawn_doubts, thread_doubts
from cudalint.fixes.unneeded import may_be_unneeded, without_unneeded
from cudalint.fixes.view import Views
from cudalint.fixes.waiting import may_be_lost
from cudalint.project.analysis import Analysis, Basis, analyse_again
from cudalint.structs import Frozen, replace
from cudalint.text.lines import Rows
from cudalint.text.quiet import quietly
from cudalint.text.scan import Kind, lexemes
from cudalint.text.source import SourceFile

MOST_TRIALS = 24
# Of all findings of a run together: a trial runs the entries that show a finding once more.
MOST_TRIALS_OF_RUN = 500
# What all trials of a run, and the proofs of what held, may cost in steps: so much in any case, which is some seconds,
# and so many times what finding the findings cost. Otherwise n launches in n lines would cost n times n.
MOST_WORK = 12_000
MOST_TIMES = 5
# What a trial costs besides its steps. Reading so many characters, as a program and for its places, costs one more.
TRIAL = 60
CHARACTERS = 60
MOST_TEXTS = 16
MOST_STEPS = 8
# Imports and variables that a repair leaves without a use.
MOST_UNNEEDED = 6
# What a warning that a repair brings is about, in words that follow its code.
_REMAINS = {
    "CUD201": "a GPU context per worker",
    "CUD302": "GPU memory that processes share",
}
_TWINS = {"CUD101": "CUD102", "CUD102": "CUD101"}


class _Place(Frozen):
    """A finding by its code and the character it stands at."""

    code: str
    filename: str
    offset: int


class _Attempt(Frozen):
    """The program after some proposals: its texts, how they differ from the old ones, and what the machine says."""

    texts: Mapping[str, str]
    changes: Mapping[str, Sequence[Change]]
    proposals: tuple[Proposal, ...]
    findings: tuple[Finding, ...]
    basis: Basis


class Run:
    """What the searches of one run share: what is known of texts, how many repairs were tried out, and what that cost.

    ``work`` is in steps; what is known from runs before counts as it did there. ``notes`` say for which findings none
    was looked for; ``broken`` are those whose search failed, each with its error. ``analyses`` are those that have the
    findings.
    """

    def __init__(self, analyses: Iterable[Analysis] = ()) -> None:
        self.views = Views()
        self.trials = 0
        self.work = 0
        self.broken: list[tuple[Finding, Exception]] = []
        self._most_work = MOST_WORK + MOST_TIMES * sum(analysis.work.steps for analysis in analyses)
        self._rows: dict[str, Rows] = {}
        self._comments: dict[str, Counter[str]] = {}
        self._left_out: dict[str, int] = {}

    @property
    def is_over(self) -> bool:
        """Whether all trials are used up, or as much work as they may be."""
        return self.trials >= MOST_TRIALS_OF_RUN or self.work >= self._most_work

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each file with findings for which no repair was looked for."""
        return tuple(
            f"{path}: {self.trials} repairs were tried out in this run, the most that it may cost, and none for "
            f"{count} findings here: repair the others first, or check this file alone"
            for path, count in sorted(self._left_out.items())
        )

    def charge(self, trial: Analysis, texts: Iterable[str]) -> None:
        """Count a repair that was tried out, with these new texts of files."""
        self.trials += 1
        self.charge_steps(TRIAL + trial.work.steps + sum(map(len, texts)) // CHARACTERS)

    def charge_steps(self, steps: int) -> None:
        """Count what was run besides, to prove a repair."""
        self.work += steps

    def leave_out(self, finding: Finding) -> None:
        """Look for no repair of a finding."""
        path = finding.span.filename
        self._left_out[path] = self._left_out.get(path, 0) + 1

    def offset(self, text: str, place: Position) -> int:
        """The character at a place of a text."""
        return _kept(self._rows, text, Rows).offset(place.row, place.column)

    def comments(self, text: str) -> Counter[str]:
        """The comments of a text."""
        return _kept(self._comments, text, _comments)


_Known = TypeVar("_Known")


def _kept(known: dict[str, _Known], text: str, make: Callable[[str], _Known]) -> _Known:
    """What is known of a text, and of the texts that were asked for last."""
    found = known.pop(text, None)
    known[text] = make(text) if found is None else found
    if len(known) > MOST_TEXTS:
        del known[next(iter(known))]
    return known[text]


class _Search:
    """The search for one finding's repair; the number of trials is bounded, never the time."""

    def __init__(self, basis: Basis, finding: Finding, run: Run) -> None:
        self._basis = basis
        self._finding = finding
        self._run = run
        self._trials = 0
        self._old = {s.path: s.text for s in basis.files.sources.values()}

    @cached_property
    def _first_steps(self) -> frozenset[str]:
        """What could be proposed for the program as it is; asked late, because a repair may run the machine for it."""
        case = Case(self._finding, self._basis.outcomes[self._finding], self._basis, self._run.views)
        return frozenset(p.message for p in self._proposals(case) if not p.shown)

    def fix(self) -> Fix | None:
        """The first repair that holds; one that brings no warning of its own is preferred; else advice."""
        advice: Proposal | None = None
        second: _Attempt | None = None
        larger: _Attempt | None = None
        last: _Attempt | None = None
        for attempt in self._attempts():
            if isinstance(attempt, Proposal):
                advice = advice or attempt
            elif any(proposal.last_resort for proposal in attempt.proposals):
                last = last or attempt
            elif self._does_more_than_needed(attempt):
                larger = larger or attempt
            elif self._warnings(attempt):
                second = second or attempt
            else:
                return self._built(attempt)
        kept = second or larger or last
        if kept is not None:
            return self._built(kept)
        return None if advice is None else self._advised(advice)

    def _does_more_than_needed(self, attempt: _Attempt) -> bool:
        """Whether the last step of an attempt may do without those before: it is tried alone as well."""
        *before, last = [proposal.message for proposal in attempt.proposals]
        return any(message != last for message in before) and last in self._first_steps

    def _attempts(self) -> Iterator[_Attempt | Proposal]:
        start = _Attempt({}, {}, (), (), self._basis)
        yield from self._carried_on(start, self._finding)

    def _carried_on(self, attempt: _Attempt, problem: Finding) -> Iterator[_Attempt | Proposal]:
        """Attempts that first repair a problem of the program as it is after an attempt."""
        basis = attempt.basis
        outcome = basis.outcomes.get(problem)
        if outcome is None:
            return
        for proposal in self._proposals(Case(problem, outcome, basis, self._run.views)):
            if proposal.shown:
                if not attempt.proposals:
                    yield proposal
                continue
            following = self._tried(attempt, proposal)
            if following is None:
                continue
            problems = self._problems(following)
            if not problems and not self._loses_launch(following):
                yield following
            elif (
                problems
                and not proposal.final
                and len(following.proposals) < MOST_STEPS
                and not self._unmoved(attempt, problem, following, problems[0])
            ):
                yield from self._carried_on(following, problems[0])

    def _proposals(self, case: Case) -> Iterator[Proposal]:
        for repair in repairs(case.finding.code):
            yield from repair(case)

    def _tried(self, attempt: _Attempt, proposal: Proposal) -> _Attempt | None:
        """The program with one more proposal in it; None where nothing changes or a bound is met."""
        if self._trials >= MOST_TRIALS or self._run.is_over:
            return None
        texts = dict(attempt.texts)
        for path, changes in proposal.changes.items():
            before = texts.get(path, self._old[path])
            try:
                texts[path] = ended_as(before, apply(before, self._fitted(attempt.basis, path, changes)))
            except ValueError:
                return None
        texts.update((path, self._tidied(texts, path, proposal)) for path in proposal.changes)
        if texts == attempt.texts or any(
            self._run.comments(self._old[p]) - self._run.comments(t) for p, t in texts.items()
        ):
            # What somebody wrote for people to read is never lost.
            return None
        self._trials += 1
        changed = {path: texts[path] for path in proposal.changes}
        analysis = analyse_again(attempt.basis, changed, self._finding)
        self._run.charge(analysis, changed.values())
        assert analysis.basis is not None
        if self._is_cut_short(analysis.basis):
            return None
        moved = {path: between(self._old[path], text) for path, text in texts.items()}
        return _Attempt(texts, moved, (*attempt.proposals, proposal), analysis.findings, analysis.basis)

    def _tidied(self, texts: Mapping[str, str], path: str, proposal: Proposal) -> str:
        """The new text of a file without what nothing uses any more since the repair took its last use away."""
        module = self._basis.files.names[path]
        source, text = self._basis.files.sources[module], texts[path]
        before = self._run.views.of(source, module)
        if source.cells is not None or not may_be_unneeded(before, text):
            # The cells of a notebook are for people, who may use what they import in those that they write next.
            return text
        others = [texts.get(p, old) for p, old in self._old.items() if p != path]
        traits = self._basis.files.library.traits if proposal.proof is Proof.NEVER else None
        for _ in range(MOST_UNNEEDED):
            try:
                after = self._run.views.of(SourceFile(path, text, text.encode()), module)
            except cst.ParserSyntaxError:
                return text
            changes = without_unneeded(before, after, others, traits)
            if not changes:
                return text
            text = apply(text, changes)
        return text

    def _fitted(self, basis: Basis, path: str, changes: Iterable[Change]) -> Iterable[Change]:
        """Changes of a file as they can be written where they stand."""
        module = basis.files.names.get(path)
        if module is None or not has_formatted(basis.files.sources[module].text):
            return changes
        return fitted(self._run.views.of(basis.files.sources[module], module), changes)

    def _is_cut_short(self, basis: Basis) -> bool:
        """Whether a bound now cuts an entry that showed the finding: then that it is gone means nothing."""
        return not self._basis.entries.get(self._finding, frozenset()).isdisjoint(basis.cut - self._basis.cut)

    def _problems(self, attempt: _Attempt) -> list[Finding]:
        """What an attempt leaves to do: the finding itself, then errors that were none before."""
        own = self._images([self._finding], attempt)
        known = self._images((f for f in self._basis.outcomes if f.severity is Severity.ERROR), attempt)
        same: list[Finding] = []
        new: list[Finding] = []
        for found in attempt.findings:
            place = self._place(found, attempt.texts)
            if place in own:
                same.append(found)
            elif found.severity is Severity.ERROR and place not in known:
                new.append(found)
        return [*same, *new]

    def _loses_launch(self, attempt: _Attempt) -> bool:
        """Whether workers are sure not to get what they need, or not seen to start: then nothing is known of them."""
        if not any(p.proof.starts_afresh for p in attempt.proposals):
            return False
        place = Case(self._finding, self._basis.outcomes[self._finding], self._basis).place_of_launch
        launches = attempt.basis.launches
        if _refusing(attempt.basis) - _refusing(self._basis):
            return True
        return place is not None and all(site.module != place.module for site, _ in launches)

    def _unmoved(self, before: _Attempt, problem: Finding, after: _Attempt, left: Finding) -> bool:
        """Whether a proposal did nothing for its problem: it is left, and of the same cause."""
        if left.code != problem.code:
            return False
        causes = [s.span for s in problem.trace if s.kind is StepKind.CAUSE]
        left_causes = [s.span for s in left.trace if s.kind is StepKind.CAUSE]
        places = [(problem.span, left.span), *zip(causes, left_causes, strict=False)]
        return len(causes) == len(left_causes) and all(self._stays(a, before, b, after) for a, b in places)

    def _stays(self, old: Span, before: _Attempt, new: Span, after: _Attempt) -> bool:
        """Whether a place of one text is that of another, with the changes in between."""
        if old.filename != new.filename:
            return False
        texts = [a.texts.get(old.filename, self._old[old.filename]) for a in (before, after)]
        was, now = (self._run.offset(t, s.start) for t, s in zip(texts, (old, new), strict=True))
        return now in images(was, between(texts[0], texts[1]))

    def _warnings(self, attempt: _Attempt) -> list[str]:
        """The codes of findings of the changed program that were not there before."""
        known = self._images(self._basis.outcomes, attempt)
        return sorted({f.code for f in attempt.findings if self._place(f, attempt.texts) not in known})

    def _images(self, findings: Iterable[Finding], attempt: _Attempt) -> set[_Place]:
        """Where findings of the program as it was would stand now; the two grades of one rule are one."""
        result: set[_Place] = set()
        for finding in findings:
            place = self._place(finding, {})
            offsets = images(place.offset, attempt.changes.get(place.filename, ()))
            codes = [finding.code, *([_TWINS[finding.code]] if finding.code in _TWINS else [])]
            result.update(_Place(code, place.filename, offset) for code in codes for offset in offsets)
        return result

    def _place(self, finding: Finding, texts: Mapping[str, str]) -> _Place:
        filename = finding.span.filename
        text = texts.get(filename, self._old[filename])
        return _Place(finding.code, filename, self._run.offset(text, finding.span.start))

    # -- what is offered -------------------------------------------------------------------------------------

    def _built(self, attempt: _Attempt) -> Fix:
        edits: list[Edit] = []
        for path, changes in sorted(attempt.changes.items()):
            edits.extend(as_edits(path, self._old[path], changes))
        doubt = self._doubt(attempt)
        level = Applicability.SAFE if doubt is None else Applicability.UNSAFE
        messages = dict.fromkeys(p.message for p in attempt.proposals)
        message = "; ".join([*messages, *(_remaining(code) for code in self._warnings(attempt))])
        return Fix(level, message, tuple(edits), doubt)

    def _advised(self, advice: Proposal) -> Fix:
        edits: list[Edit] = []
        for path, changes in sorted(advice.changes.items()):
            edits.extend(as_edits(path, self._old[path], changes))
        return Fix(Applicability.DISPLAY, advice.message, tuple(edits), advice.doubt)

    def _doubt(self, attempt: _Attempt) -> str | None:
        """Why a repair is not safe; None where the program fails without it and is proven with it.

        Of a change of the start method all is named that may differ, also where it is not safe for another reason.
        """
        doubts = [] if (first := self._plain_doubt(attempt)) is None else [first]
        if any(p.proof.starts_afresh for p in attempt.proposals):
            doubts += spawn_doubts(
                self._basis, attempt.basis, attempt.texts, self._finding, self._run.charge_steps, fails=bool(doubts)
            )
        for beside in (p.beside for p in attempt.proposals if p.beside):
            doubts += self._doubts_in_threads(beside)
        return joined(list(dict.fromkeys(doubts)))

    def _doubts_in_threads(self, beside: Mapping[str, tuple[Change, ...]]) -> list[str]:
        """What threads may lack, told from what the fresh processes would that start by other changes."""
        texts = {path: apply(self._old[path], changes) for path, changes in beside.items()}
        analysis = analyse_again(self._basis, texts, self._finding)
        assert analysis.basis is not None
        return thread_doubts(self._basis, analysis.basis, texts, self._finding, self._run.charge_steps)

    def _plain_doubt(self, attempt: _Attempt) -> str | None:
        for proposal in attempt.proposals:
            if proposal.proof in (Proof.NEVER, Proof.NEVER_BY_SPAWN):
                return proposal.doubt
        outcome = self._basis.outcomes[self._finding]
        if not may_be_safe(self._finding.code):
            return attempt.proposals[0].doubt
        survives = outcome.caught or outcome.outlived
        if self._finding.severity is not Severity.ERROR or not outcome.certain or survives:
            return "the program may work as it is"
        if outcome.on_some_paths or outcome.assumed:
            return "the program may work on other paths"
        if may_be_lost(Case(self._finding, outcome, self._basis, self._run.views)):
            return "the program may go on without what its workers give"
        if attempt.basis.untried:
            return f"what is changed runs in {len(attempt.basis.untried)} more ways than were tried out"
        return None


def _remaining(code: str) -> str:
    """That a repair brings a warning, as its message says it."""
    return f"{code} remains: {_REMAINS[code]}" if code in _REMAINS else f"{code} remains"


def _refusing(basis: Basis) -> set[str]:
    """The modules with a launch that what its workers need does not reach."""
    return {site.module for (site, _), found in basis.launches.items() if found.refused is not None}


@quietly()
def repaired(
    analysis: Analysis,
    findings: Iterable[Finding],
    run: Run | None = None,
    makes: Callable[[Finding], bool] = lambda finding: False,
) -> dict[Finding, Fix]:
    """The repairs of those findings that the analysis made and that have one; ``run`` bounds them together.

    ``makes`` says of a finding with its repair that this is made next: for what else is found in its files none is
    looked for, as it would be one of another text.
    """
    basis = analysis.basis
    if basis is None:
        return {}
    run = run or Run([analysis])
    result: dict[Finding, Fix] = {}
    changed: set[str] = set()
    for finding in findings:
        if finding not in basis.outcomes or finding.span.filename in changed:
            continue
        if run.is_over:
            run.leave_out(finding)
            continue
        try:
            fix = _Search(basis, finding, run).fix()
        except Exception as error:
            # A mistake of ours costs this repair, and neither the findings nor the other repairs.
            run.broken.append((finding, error))
            continue
        if fix is None:
            continue
        result[finding] = fix
        if makes(replace(finding, fix=fix)):
            changed.update(edit.span.filename for edit in fix.edits)
    # What was tried out is known to later runs.
    basis.files.known.keep()
    return result


def _comments(text: str) -> Counter[str]:
    return Counter(text[lexeme.start : lexeme.end] for lexeme in lexemes(text) if lexeme.kind is Kind.COMMENT)
