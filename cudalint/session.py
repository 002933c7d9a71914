"""The one door for every host and the tests: ``Session(config).check(paths)`` gives a report."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from cudalint import rules
from cudalint.config import Config, ConfigError
from cudalint.context import Around, Context, Room, add_imported, fits, leads_to, nearest_first, programs_lead_to
from cudalint.discovery import Listed, discover, list_some, without_python
from cudalint.finding import Finding, Fix
from cudalint.found import Effort, Report
from cudalint.intake import (
    INTERNAL_ERROR,
    SYNTAX_ERROR,
    Intake,
    Read,
    read,
    sort,
    states,
    take_bytes,
    take_text,
)
from cudalint.nearest import Nearest
from cudalint.policy import baseline, suppression
from cudalint.policy.accepted import Accepted
from cudalint.policy.baseline import Baseline, BaselineError
from cudalint.project import deployments
from cudalint.project.file_facts import KnownFacts
from cudalint.project.markers import Lexicon
from cudalint.project.pytest_files import conftests_above
from cudalint.project.requirements import FILES
from cudalint.project.seen import Seen
from cudalint.recalled import alone, keep, recalled, replayed
from cudalint.results import Question, Result
from cudalint.salvage import Outcome, of_analyses, salvage, without_repairs
from cudalint.settings_files import NONE_READ, SettingsRead
from cudalint.store import Store
from cudalint.structs import replace
from cudalint.text.noqa import Suppressions, may_suppress, suppressions
from cudalint.text.source import Cells, SourceFile
from cudalint.unparsed import syntax_errors, worth_reading

if TYPE_CHECKING:
    from cudalint.fixes.engine import Run
    from cudalint.project.analysis import Analysis, Options
    from cudalint.project.entering import Entering
    from cudalint.project.process_map import ProcessMap

_Comments: TypeAlias = Callable[[str], Suppressions]
# Of a fix, whether it is made before the next check; the cells of notebooks say whose rows it edits.
Admits: TypeAlias = "Callable[[Fix, Mapping[str, Cells]], bool]"
Repairs: TypeAlias = "Callable[[Finding, Mapping[str, Cells]], bool]"


class Session:
    """Runs with one configuration. What runs have in common it keeps in ``store``, if it is given one.

    ``before`` are findings of another state of the program: they are not shown again. ``unsaved`` holds bytes by
    absolute path that stand for what is on the disk, as an editor has them; also of files that are not there yet.
    """

    def __init__(
        self,
        config: Config,
        store: Store | None = None,
        before: Baseline | None = None,
        unsaved: Mapping[str, bytes] | None = None,
    ) -> None:
        self._config = config
        self._store = store
        self._before = before
        self._unsaved: Mapping[str, bytes] = dict(unsaved or {})
        self._nearest = Nearest(config)

    @property
    def root(self) -> str | None:
        """The folder of the project, where something marks one."""
        return self._config.root

    @property
    def unsaved(self) -> Mapping[str, bytes]:
        """The bytes that stand for files on the disk."""
        return self._unsaved

    def selected(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The files that a check of these paths is about; raises ``NotFound`` for a path that does not exist."""
        config = self._config
        return discover(tuple(paths), config.exclusion, config.root, self._unsaved, self._nearest.exclusion)

    def _without_python(self, paths: tuple[str, ...], selected: tuple[str, ...]) -> tuple[str, ...]:
        config = self._config
        return without_python(paths, selected, config.exclusion, config.root, self._nearest.exclusion)

    def check(
        self,
        paths: Iterable[str],
        *,
        repair: bool = True,
        instead: Mapping[str, bytes] | None = None,
        whole: bool = False,
        once: bool = False,
        admits: Admits | None = None,
    ) -> Report:
        """Check files and directories.

        ``repair`` says whether findings carry their fixes, which costs a further analysis or more for each. Where
        ``admits`` says that one is made before the next check, no further ones are looked for in its files.
        ``instead`` holds bytes that stand for files, on the disk or unsaved. ``whole`` says that the paths are all
        there is: nothing else of the project is read. ``once`` says that no cell of a notebook is run again.

        Raises:
            NotFound: for a path that does not exist.
            ConfigError: for a baseline that is none.
        """
        paths = tuple(paths)
        instead = {**self._unsaved, **(instead or {})}
        found = self.selected(paths)
        empty = self._without_python(paths, found)
        files = read(found, instead)
        accepted = self._accepted(file.path for file in files)
        rest = cache(lambda: self._rest(files, instead))
        others = self._nearest.others(file.path for file in files)
        words = (*map(os.path.abspath, paths), *map(_of_files, others), *empty)
        asked = self._question("project", str(repair), str(whole), str(once), *words)
        around = self._conftests(files, instead)
        asked = asked.about(*accepted.states()).about(*self._states_of((*files, *around)))
        known = recalled(asked, files, lambda: rest().files, self._states_of)
        if known is not None:
            return self._framed(known)
        facts = self._facts()
        intake = sort(files, facts.may_matter, most=self._config.limits.file_size)
        if empty:
            said = f"no Python file found under {', '.join(empty)}"
            intake = replace(intake, warnings=(said, *intake.warnings))
        is_partial = not whole and self._needs_context(intake, files, around, facts)
        if is_partial:
            # Otherwise nothing here mentions CUDA or processes, and the rest of the project cannot matter either.
            intake += self._context(rest(), facts)
        selected = tuple(file.path for file in files)
        outcome = self._analyse(intake, facts, alone=False, about=frozenset(selected), once=once)
        report = self._checked(paths, selected, intake, outcome, self._repairs(repair, admits), accepted)
        if is_partial:
            asked.keep(Result(is_partial=True))
        if not _is_changed(report, admits):
            keep(asked.about(*self._states_of(rest().files)) if is_partial else asked, report)
        return self._framed(report)

    def _framed(self, report: Report) -> Report:
        """A report with what the configuration says of the run."""
        config = self._config
        is_compared = config.baseline is not None or self._before is not None
        pythons = self._nearest.pythons(finding.span.filename for finding in report.findings)
        said = replace(report, target_versions=config.target_versions, pythons=pythons)
        return replace(said, is_compared=is_compared, fail_on=config.fail_on)

    def _accepted(self, files: Iterable[str]) -> Accepted:
        """What is known already of some files, and of those that are gone."""
        path = self._config.baseline
        try:
            return Accepted(None if path is None else baseline.load(path), self._before, frozenset(files))
        except BaselineError as error:
            raise ConfigError(str(error)) from None

    def _checked(
        self,
        paths: Iterable[str],
        selected: Sequence[str],
        intake: Intake,
        outcome: Outcome,
        repairs: Repairs | None,
        accepted: Accepted,
    ) -> Report:
        raw = [*intake.findings, *_touching(outcome.findings, frozenset(selected))]
        raw.extend(syntax_errors(worth_reading(intake.sources, selected, paths), raw))
        comments = _comments_of(intake)
        verdict = suppression.apply(raw, comments)
        unused = () if outcome.failures else self._unused(selected, raw, verdict, intake, comments)
        report = self._report(intake, outcome, (*verdict.kept, *unused), repairs, accepted)
        known = {(finding.span, finding.code) for finding in (*report.findings, *report.known)}
        return replace(report, silenced=_sorted(one for one in raw if (one.span, one.code) not in known))

    def check_alone(
        self,
        filename: str,
        content: bytes | str,
        *,
        honour_noqa: bool = True,
        repair: bool = True,
        admits: Admits | None = None,
    ) -> Report:
        """Check one file as if there were no other: standard input, or flake8, which has its own noqa.

        Raises:
            ConfigError: for a baseline that is none.
        """
        path = os.path.abspath(filename)
        accepted = self._accepted((path,))
        asked = self._question("alone", str(honour_noqa), str(repair), type(content).__name__)
        asked = asked.about(*accepted.states()).about(repr(self._nearest.pythons((path,))), path, content)
        known = asked.answer()
        if known is not None:
            return self._framed(replayed(known, {source.path: source for source in alone(path, content)}))
        facts, most = self._facts(), self._config.limits.file_size
        if isinstance(content, str):
            intake = take_text(path, content, facts.may_matter, most)
        else:
            intake = take_bytes(path, content, facts.may_matter, most)
        outcome = self._analyse(intake, facts, alone=True)
        findings = (*intake.findings, *outcome.findings)
        findings = (*findings, *syntax_errors(intake.sources, findings))
        if honour_noqa:
            findings = suppression.apply(findings, _comments_of(intake)).kept
        repairs = self._repairs(repair, admits)
        report = replace(self._report(intake, outcome, findings, repairs, accepted), vanished=())
        if not _is_changed(report, admits):
            keep(asked, report)
        return self._framed(report)

    def explain(self, filename: str, row: int, cell: int | None = None) -> list[str]:
        """What the analysis believes about a line, of a ``cell`` in a notebook.

        Raises ``NotFound`` for a missing file, ``LookupError`` for a line that the notebook does not have.
        """
        intake = self._with_context((filename,))
        if intake.findings:
            return [f"{finding.span.filename}: {finding.message}" for finding in intake.findings]
        if not intake.mattering:
            return []
        from cudalint.project.beliefs import explain

        path = os.path.abspath(filename)
        if cell is not None:
            row = _row_of(intake, path, cell, row)
        return explain(intake.sources, self._options(intake.sources), path, row, self._store)

    def seen(self, filename: str) -> Seen:
        """What the analysis believes about all lines of a file; raises ``NotFound`` for a missing one."""
        intake = self._with_context((filename,))
        if intake.findings or not intake.mattering:
            return Seen({}, ())
        from cudalint.project.beliefs import seen

        path = os.path.abspath(filename)
        cells = next((source.cells for source in intake.sources if source.path == path), None)
        return replace(seen(intake.sources, self._options(intake.sources), path, self._store), cells=cells)

    def functions(self, paths: Iterable[str]) -> list[str]:
        """What the functions of some files do to CUDA and processes; raises ``NotFound`` for a missing file."""
        intake = self._with_context(tuple(paths))
        if not intake.mattering:
            return [f"{finding.span.filename}: {finding.message}" for finding in intake.findings]
        from cudalint.project.beliefs import functions

        about = frozenset(self.selected(paths))
        return functions(intake.sources, self._options(intake.sources), self._config.root, self._store, about)

    def map(self, paths: Iterable[str]) -> ProcessMap:
        """The processes of the program behind some files; raises ``NotFound`` for a missing file."""
        paths = tuple(paths)
        intake = self._with_context(paths)
        from cudalint.lacks import cuts, unread
        from cudalint.project.process_map import Lack, ProcessMap

        warned = tuple(Lack(None, warning) for warning in intake.warnings)
        selected = self.selected(paths)
        if not intake.mattering:
            broken = syntax_errors(worth_reading(intake.sources, selected, paths), intake.findings)
            return ProcessMap((), (*warned, *unread((*intake.findings, *broken))))
        from cudalint.project.beliefs import processes

        about = frozenset(selected)
        made = processes(intake.sources, self._options(intake.sources), self._config.root, self._store, about)
        raw = (*intake.findings, *made.analysis.findings)
        raw = (*raw, *syntax_errors(worth_reading(intake.sources, selected, paths), raw))
        kept = suppression.apply(made.analysis.findings, _comments_of(intake)).kept
        shown = {finding: self._nearest.rated(finding) for finding in kept if self._nearest.shows(finding)}
        texts = {source.path: source.shown for source in intake.sources}
        known = self._accepted(selected).split(tuple(shown), texts, frozenset(), self._config.selection.shows).known
        lacks = cuts((*intake.notes, *made.analysis.notes), about)
        return ProcessMap(made.trees(shown, known), (*warned, *unread(raw), *lacks))

    def _with_context(self, paths: tuple[str, ...]) -> Intake:
        """The files under some paths, and what bears on them if they matter."""
        files = read(self.selected(paths), self._unsaved)
        facts = self._facts()
        intake = sort(files, facts.may_matter, most=self._config.limits.file_size)
        around = self._conftests(files, self._unsaved)
        if self._needs_context(intake, files, around, facts):
            return intake + self._context(self._rest(files, self._unsaved), facts)
        return intake

    def _needs_context(self, intake: Intake, files: Sequence[Read], around: Iterable[Read], facts: KnownFacts) -> bool:
        """Whether the rest of a project can matter to files: ``around`` is what pytest imports before them."""
        if intake.mattering or any(facts.may_matter(file.data) for file in around):
            return True
        return self._leaves_to_others(files)

    def _leaves_to_others(self, files: Sequence[Read]) -> bool:
        """Whether files that mention neither CUDA nor processes may leave both to what they import.

        That is looked into for programs, whose every path begins in them, and where other folders are named.
        """
        root = self._config.root
        if leads_to(files, self._config.extra_paths):
            return True
        return root is not None and programs_lead_to(files, lambda: self.selected((root,)))

    def _conftests(self, files: Sequence[Read], instead: Mapping[str, bytes]) -> tuple[Read, ...]:
        """What pytest imports before test modules among some files: their fixtures may use CUDA and start processes."""
        root, known = self._config.root, {file.path for file in files}
        paths = () if root is None else conftests_above((file.path for file in files), root)
        return read((path for path in paths if path not in known), instead)

    def _facts(self) -> KnownFacts:
        """What searching the bytes of files shows, such as whether they mention CUDA or processes."""
        from cudalint.models.library import load

        lexicon = Lexicon.of(load(self._config.models).vocabulary)
        return KnownFacts(lexicon, self._store, self._config.root or os.getcwd())

    def _rest(self, files: Sequence[Read], instead: Mapping[str, bytes]) -> Context[Read]:
        """The rest of the project; where nothing marks one, what the files import from beside them."""
        config = self._config
        room = Room(config.limits.context_files, config.limits.context_size, config.limits.file_size)
        known = {file.path for file in files}
        if config.root is None:
            beside = Around(lambda path: read((path,), instead), room.outside(), known)
            add_imported(beside, files)
            return beside.context("beside what is checked")
        own = Around(lambda path: read((path,), instead), room, known)
        own.fill(nearest_first(self.selected((config.root,)), known))
        project = own.context("in the project")
        if not config.extra_paths:
            return project
        outside = Around(own.read, room.outside(), known)
        self._add_outside(outside, (*files, *project.files))
        return project + outside.context("outside of the project")

    def _add_outside(self, around: Around[Read], files: Sequence[Read]) -> None:
        """The folders beside the project that its settings name; of too many files those first that are imported."""
        found = self._list_outside(around.room.files + len(around.known))
        others = [path for path in found.paths if path not in around.known]
        if not (found.is_all and fits(others, around.room)):
            add_imported(around, files, self._config.extra_paths)
        around.fill(others)
        around.is_full |= not found.is_all

    def _list_outside(self, most: int) -> Listed:
        config = self._config
        folders, others = config.extra_paths, self._nearest.exclusion
        return list_some(folders, most, config.exclusion, config.root, self._unsaved, others)

    def bearing_on(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The files that may decide what is found under some paths; raises ``NotFound`` as ``check`` does."""
        root = self._config.root
        found = self.selected((*paths, *([] if root is None else [root])))
        return (*found, *self._list_outside(self._config.limits.context_files).paths)

    def _context(self, rest: Context[Read], facts: KnownFacts) -> Intake:
        """The rest of the project, as context. What cannot be read there is not the run's concern."""
        around = sort(rest.files, facts.may_matter, is_context=True, most=self._config.limits.file_size)
        return replace(around, findings=(), warnings=(), notes=rest.notes)

    def _question(self, *words: str) -> Question:
        """What decides the result of a run besides the files: what is asked, and the configuration."""
        config = self._config
        if self._store is None or config.limits.seconds is not None:
            return Question(None)  # what a clock ended is not what another run would find
        asked = Question(self._store)
        root = config.root
        decisive = (
            root or os.getcwd(),
            root is None,
            config.selection,
            config.per_file_ignores,
            config.exclusion,
            config.target_versions,
            config.platform,
            config.extend_safe_fixes,
            config.extend_unsafe_fixes,
            config.severity,
            config.extra_paths,
            config.limits,
        )
        metadata = [] if root is None else [os.path.join(root, name) for name in FILES]
        metadata += [] if root is None else deployments.paths(root)
        return asked.about(*words).about(repr(decisive), *states(read((*config.models, *metadata))))

    def _states_of(self, files: Sequence[Read]) -> Iterator[str | bytes]:
        """What decides what files mean: what they hold, and the Pythons that programs among them run on."""
        yield repr(self._nearest.pythons(file.path for file in files))
        yield from states(files)

    def _options(self, sources: Iterable[SourceFile]) -> Options:
        from cudalint.project.analysis import Options

        config = self._config
        nearer = self._nearest.pythons(source.path for source in sources)
        return Options(config.target_versions, config.platform, config.models, config.limits, nearer)

    def _analyse(
        self,
        intake: Intake,
        facts: KnownFacts,
        *,
        alone: bool,
        about: frozenset[str] | None = None,
        once: bool = False,
    ) -> Outcome:
        nothing = Outcome(effort=Effort(intake.files, intake.size))
        if not intake.mattering:
            return nothing
        # Only here, so that a run with nothing to analyse never pays for the project's facts, still less the parser.
        from cudalint.project.entering import entering

        try:
            begun = entering(intake.sources, self._config.models, self._config.root, self._store, facts, about)
            if begun.is_over and not _has_cells(intake):
                begun.files.keep()
                return replace(nothing, notes=tuple(sorted(begun.files.notes)))
            return self._analysed(begun, intake, facts, alone, about, once)
        except Exception:  # whatever it is, it becomes a finding, and the other files are checked
            failure = traceback.format_exc()
        return self._salvaged(intake, about, failure)

    def _analysed(
        self,
        begun: Entering,
        intake: Intake,
        facts: KnownFacts,
        alone: bool,
        about: frozenset[str] | None,
        once: bool,
    ) -> Outcome:
        # Only here, so that a run in which nothing is entered never pays for the parser and the machine.
        from cudalint.project.analysis import analyse, analyse_begun

        options, jobs = self._options(intake.sources), self._config.jobs
        made = analyse_begun(begun, options, alone=alone, about=about, jobs=jobs)
        if once or not _has_cells(intake):
            return of_analyses(intake, [made])
        from cudalint.reruns import run_again

        root, store = self._config.root, self._store
        run = partial(analyse, options=options, alone=alone, root=root, store=store, jobs=jobs, known=facts)
        again = run_again(intake.sources, about, made.findings, lambda own, only: run(own, about=only))
        return of_analyses(intake, [made] if again is None else [made, again])

    def _salvaged(self, intake: Intake, about: frozenset[str] | None, failure: str) -> Outcome:
        from cudalint.project.analysis import analyse

        options, root = self._options(intake.sources), self._config.root
        mattering = intake.mattering if about is None else intake.mattering & about
        return salvage(
            replace(intake, mattering=mattering or intake.mattering),
            lambda source: analyse((source,), options, alone=True, root=root),
            failure,
        )

    def _unused(
        self,
        selected: Iterable[str],
        raw: Iterable[Finding],
        verdict: suppression.Verdict,
        intake: Intake,
        comments: _Comments,
    ) -> Iterator[Finding]:
        unread = {finding.span.filename for finding in raw if finding.code in {INTERNAL_ERROR, SYNTAX_ERROR}}
        texts = {source.path: source.text for source in intake.sources}
        for path in selected:
            if path not in unread and path in texts:
                judged = partial(_is_judged, self._nearest.of(path))
                named = partial(_is_named, path, texts)
                yield from suppression.unused(path, texts[path], comments(path), verdict, judged, named)

    def _repairs(self, repair: bool, admits: Admits | None) -> Repairs | None:
        """What says of a finding with its repair that this is made next; None where no repairs are wanted."""
        if not repair:
            return None
        if admits is None:
            return lambda finding, cells: False

        def makes(finding: Finding, cells: Mapping[str, Cells]) -> bool:
            fix = self._nearest.graded(finding).fix
            return fix is not None and admits(fix, cells)

        return makes

    def _report(
        self, intake: Intake, outcome: Outcome, findings: Iterable[Finding], repairs: Repairs | None, accepted: Accepted
    ) -> Report:
        texts = {source.path: source.shown for source in intake.sources}
        found = _sorted(finding for finding in findings if self._nearest.shows(finding))
        unread = frozenset(one.span.filename for one in found if one.code in {INTERNAL_ERROR, SYNTAX_ERROR})
        split = accepted.split(found, texts, unread, self._config.selection.shows)
        shown = split.new
        notes: tuple[str, ...] = ()
        failures = outcome.failures
        if repairs is not None and shown:
            cells = {source.path: source.cells for source in intake.sources if source.cells is not None}
            repaired, run = _repaired(outcome.analyses, shown, lambda finding: repairs(finding, cells))
            broken, tracebacks = without_repairs(run.broken)
            shown = _sorted((*map(self._nearest.graded, repaired), *broken))
            notes, failures = run.notes, (*failures, *tracebacks)
        # Only now: repairs are looked for by the findings as they were made.
        shown = tuple(self._nearest.rated(finding) for finding in shown)
        named = {finding.span.filename for finding in shown}
        named.update(step.span.filename for finding in shown for step in finding.trace)
        sources = [source for source in intake.sources if source.path in named]
        return Report(
            findings=shown,
            texts={source.path: source.shown for source in sources if source.path in named},
            cells={source.path: source.cells for source in sources if source.cells is not None},
            effort=outcome.effort,
            warnings=intake.warnings,
            notes=(*intake.notes, *outcome.notes, *notes),
            failures=failures,
            settings=_settings_of(outcome),
            known=split.known,
            vanished=() if failures else split.vanished,
        )


def _settings_of(outcome: Outcome) -> SettingsRead:
    """The files of settings that were read; several analyses of a run are of one project."""
    read = [one.settings.read() for one in outcome.analyses if one.settings is not None]
    files = sorted({file for one in read for file in one.files})
    return SettingsRead(read[0].top, tuple(files)) if read else NONE_READ


def _has_cells(intake: Intake) -> bool:
    """Whether a notebook is among the files, whose cells may be run again."""
    return any(source.cells is not None for source in intake.sources)


def _is_named(path: str, texts: Mapping[str, str]) -> bool:
    """Whether another file has the name of this one in a text of its own."""
    name = os.path.basename(path)
    quoted = (f'{name}"', f"{name}'")
    return any(each in text for other, text in texts.items() if other != path for each in quoted)


def _is_judged(config: Config, prefix: str) -> bool:
    """Whether a run can tell that a noqa code is of no use: it is ours, and all it names was shown."""
    if not prefix.startswith("CUD"):
        return False
    return all(config.selection.shows(code) for code in rules.codes() if code.startswith(prefix))


def _of_files(config: Config) -> str:
    """What a configuration decides for the files that it counts for."""
    graded = (config.severity, config.extend_safe_fixes, config.extend_unsafe_fixes)
    return repr((config.root, config.selection, config.per_file_ignores, config.exclusion, *graded))


def _row_of(intake: Intake, path: str, cell: int, row: int) -> int:
    """The row of a notebook's program for one of its cells."""
    cells = next((source.cells for source in intake.sources if source.path == path), None)
    if cells is None or (cell, row) not in cells.rows:
        raise LookupError(f"there is no line {row} in cell {cell} of {path} that is code of its kernel")
    return cells.rows.index((cell, row)) + 1


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each once, in the order of every report."""
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def _touching(findings: Iterable[Finding], selected: frozenset[str]) -> Iterator[Finding]:
    """The findings with their place, or a step of their path, in a selected file; and all about cudalint itself."""
    for finding in findings:
        if finding.code == INTERNAL_ERROR:
            yield finding
            continue
        places = (finding.span, *(step.span for step in finding.trace))
        if any(place.filename in selected for place in places):
            yield finding


def _comments_of(intake: Intake) -> _Comments:
    sources = {source.path: source for source in intake.sources}
    known: dict[str, Suppressions] = {}

    def comments(filename: str) -> Suppressions:
        if filename not in known:
            source = sources.get(filename)
            relevant = source is not None and may_suppress(source.data)
            known[filename] = suppressions(source.text) if source and relevant else Suppressions()
        return known[filename]

    return comments


def _is_changed(report: Report, admits: Admits | None) -> bool:
    """Whether a repair of a report is made before the next check, so that others were not looked for."""
    fixes = (finding.fix for finding in report.findings)
    return admits is not None and any(fix is not None and admits(fix, report.cells) for fix in fixes)


def _repaired(
    analyses: Sequence[Analysis], findings: Sequence[Finding], makes: Callable[[Finding], bool]
) -> tuple[tuple[Finding, ...], Run]:
    """The findings with the repairs that there are for them, and what looking for these came to."""
    from cudalint.fixes.engine import Run, repaired

    run = Run(analyses)
    fixes = {finding: fix for analysis in analyses for finding, fix in repaired(analysis, findings, run, makes).items()}
    return tuple(replace(f, fix=fixes[f]) if f in fixes else f for f in findings), run
