"""A program of one's own as it is and as each of its repairs leaves it, run and compared."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import Enum
from pathlib import Path
from threading import Lock

from cudalint import config
from cudalint.finding import Applicability, Finding, Fix
from cudalint.fixing.rounds import Changed, alone, fix
from cudalint.session import Session
from cudalint.structs import Frozen, field, replace
from cudalint.verify import notebooks
from cudalint.verify.gpus import Gpu
from cudalint.verify.program import Footing, Manner, Program, Trial, files, try_out
from cudalint.verify.program import Status as Seen
from cudalint.verify.runner import Runner
from cudalint.verify.sayings import is_of_programs

# Lines of a difference that are shown.
_SHOWN = 20
# Programs that meet at a port which they name would meet each other there.
_AT_PORTS = re.compile(rb"MASTER_PORT|tcp://|\.bind\(|[Ss]erver\(|\bport\s*=")
# Nothing ends any more where all processes of a program wait for so many seconds.
_REST = 20.0
# A program asked for a GPU that is not there: on a machine with fewer than two nothing follows from that.
_NO_SUCH_GPU = re.compile(
    r"invalid device ordinal|No CUDA GPUs are available|no CUDA-capable device|cudaErrorInvalidDevice|cudaErrorNoDevice"
)
# What Python makes of modules, which does not fit their copies.
_COMPILED = "__pycache__"


class Status(Enum):
    """What a run says of a repair."""

    REPAIRED = "repaired"
    STILL_BROKEN = "still broken"
    OUTPUT_DIFFERS = "output differs"
    AS_BEFORE = "works as before"
    FAILS_BY_ITSELF = "fails by itself"
    NEEDS_MORE_GPUS = "needs more GPUs"
    BROKEN_OFF = "broken off"


class Repair(Frozen):
    """A change of the program: of one repair, or of all of them one after the other."""

    message: str
    level: Applicability
    reason: str | None
    findings: tuple[Finding, ...]
    changes: tuple[Changed, ...]


class Attempt(Frozen):
    """A repair and the run of what it makes of the program; ``difference`` is that of the outputs, where it tells."""

    repair: Repair
    trial: Trial
    status: Status
    difference: tuple[str, ...] = ()

    @property
    def breaks_its_word(self) -> bool:
        """Whether a safe repair changes what is printed."""
        return self.status is Status.OUTPUT_DIFFERS and self.repair.level is Applicability.SAFE


class Comparison(Frozen):
    """A program as it is, and with its repairs; without any it was not run."""

    program: Program
    before: Trial | None
    attempts: tuple[Attempt, ...] = ()

    @property
    def wrong(self) -> tuple[Attempt, ...]:
        """What fails the run: repairs that break their word, and the last one, which has them all, if it does not help.

        One repair of several may need the others.
        """
        last = self.attempts[-1:]
        broken = tuple(one for one in last if one.status is Status.STILL_BROKEN)
        return (*broken, *(one for one in self.attempts if one.breaks_its_word))

    @property
    def failed_by_itself(self) -> bool:
        """Whether nothing was verified, as it fails in the same way with and without each repair."""
        return bool(self.attempts) and all(one.status is Status.FAILS_BY_ITSELF for one in self.attempts)

    @property
    def needs_more_gpus(self) -> bool:
        """Whether nothing was verified of its last repair, which asks for a GPU that is not there."""
        return any(one.status is Status.NEEDS_MORE_GPUS for one in self.attempts[-1:])

    @property
    def was_broken_off(self) -> bool:
        """Whether it was interrupted, so that runs are missing."""
        return not {"cancelled", "lost"}.isdisjoint(self._ends)

    @property
    def was_lost(self) -> bool:
        """Whether the program ended who watched it, or took what comes of it away."""
        return "lost" in self._ends

    @property
    def _ends(self) -> set[str]:
        trials = [*([self.before] if self.before is not None else []), *(attempt.trial for attempt in self.attempts)]
        return {trial.seen.end for trial in trials}


class Comparer(Frozen):
    """Who runs programs and their repairs, for how long, on which GPUs, and how."""

    runner: Runner
    seconds: float | None = None
    machine: Sequence[Gpu] = ()
    manner: Manner = field(default_factory=lambda: Manner(rest=_REST))
    port: Lock = field(default_factory=Lock)


def compare(program: Program, comparer: Comparer) -> Comparison:
    """Run a program as it is, with each repair by itself, and with all of them; nothing of the user's is written.

    They run one after the other: what one writes, or a port that it listens at, the next would meet.
    """
    with comparer.manner.turn:
        named = files(program, Footing.here())
        repairs = _repairs(named)
    if not repairs:
        return Comparison(program, None)
    with comparer.port if any(_AT_PORTS.search(file.read_bytes()) for file in named) else nullcontext():
        return _compared(program, named, repairs, comparer)


def _compared(program: Program, named: Sequence[Path], repairs: Iterable[Repair], comparer: Comparer) -> Comparison:
    before = _run(program, named, (), comparer)
    attempts: list[Attempt] = []
    for repair in repairs:
        if before.seen.end in ("cancelled", "lost") or any(one.status is Status.BROKEN_OFF for one in attempts):
            break
        after = _run(program, named, repair.changes, comparer)
        attempts.append(_judged(repair, before, after, gpus=len(comparer.machine)))
    return Comparison(program, before, tuple(attempts))


def _repairs(named: Sequence[Path]) -> tuple[Repair, ...]:
    if not named:
        return ()
    settings, paths = config.load((str(named[0]),)).as_measured(), [str(file) for file in named]
    report = Session(settings).check(paths, whole=True, once=True)
    of: dict[Fix, list[Finding]] = {}
    for finding in report.findings:
        if finding.fix is not None and finding.fix.edits and finding.fix.applicability is not Applicability.DISPLAY:
            of.setdefault(finding.fix, []).append(finding)
    single = [
        Repair(one.message, one.applicability, one.reason, tuple(found), changes)
        for one, found in of.items()
        if (changes := alone(one))
    ]
    if len(single) < 2:
        return tuple(single)
    done = fix(Session(settings), paths, unsafe=True)
    level = Applicability.SAFE if all(one.level is Applicability.SAFE for one in single) else Applicability.UNSAFE
    reasons = "; ".join(dict.fromkeys(one.reason for one in single if one.reason))
    found = tuple(finding for one in single for finding in one.findings)
    every = Repair("all repairs together", level, reasons or None, found, done.changes)
    return (*single, every) if all(done.changes != one.changes for one in single) else tuple(single)


def _run(
    program: Program,
    named: Sequence[Path],
    changes: Iterable[Changed],
    comparer: Comparer,
) -> Trial:
    here = Footing.here()
    texts = {Path(change.path): change.after for change in changes}
    with comparer.runner.folder() as folder, _mirror(folder, named, texts, here) as (mirror, root):

        def there(path: Path) -> Path:
            real = path.resolve()
            return mirror / real.relative_to(root) if real.is_relative_to(root) else real

        words = tuple(
            str(there(Path(word))) if word.endswith((".py", ".ipynb")) and os.path.isfile(word) else word
            for word in program.words
        )
        moved = Program(words, there(program.path))
        footing = Footing(there(here.cwd), tuple(there(entry) for entry in here.search))
        trial = try_out(moved, comparer.runner, comparer.seconds, comparer.machine, footing, comparer.manner)
        printed = tuple(line.replace(str(mirror), str(root)) for line in trial.printed)
        cells = notebooks.plan(program.path).cells if notebooks.is_notebook(program.path) else {}
        return replace(trial, program=program, printed=printed, cells=cells)


@contextmanager
def _mirror(
    folder: Path, named: Sequence[Path], texts: dict[Path, bytes], here: Footing
) -> Iterator[tuple[Path, Path]]:
    """The user's folders once more: the program's files as copies, and links to all else that lies beside them."""
    settings = config.load((str(named[0]),))
    known = [here.cwd.resolve(), *(file.parent for file in named)]
    shared = Path(os.path.commonpath([*known, *([Path(settings.root).resolve()] if settings.root else [])]))
    root, copies = shared, {file: texts.get(file) for file in named}
    mirror = folder / "program"
    for inside in sorted({above for one in known for above in (one, *one.parents) if above.is_relative_to(root)}):
        made = mirror / inside.relative_to(root)
        if made.is_symlink():
            made.unlink()
        made.mkdir(parents=True, exist_ok=True)
        for entry in _entries(inside, copies):
            target = made / entry.name
            if entry in copies:
                data = copies[entry]
                target.write_bytes(entry.read_bytes() if data is None else data)
                shutil.copymode(entry, target)
            elif entry.name != _COMPILED and not os.path.lexists(target):
                target.symlink_to(entry)
    yield mirror, root


def _entries(folder: Path, copies: Iterable[Path]) -> list[Path]:
    """What lies in a folder; of one that may not be listed the program sees no more than its copies."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return [file for file in copies if file.parent == folder]


def _judged(repair: Repair, before: Trial, after: Trial, gpus: int) -> Attempt:
    if after.seen.end in ("cancelled", "lost"):
        return Attempt(repair, after, Status.BROKEN_OFF)
    if _fails_by_itself(before) and _fails_by_itself(after) and before.seen.said == after.seen.said:
        return Attempt(repair, after, Status.FAILS_BY_ITSELF)
    if after.seen.outcome.fails and gpus < 2 and _NO_SUCH_GPU.search(after.seen.said):
        return Attempt(repair, after, Status.NEEDS_MORE_GPUS)
    if after.seen.outcome.fails or after.unpredicted or _shown(after, repair):
        return Attempt(repair, after, Status.STILL_BROKEN)
    if before.seen.outcome.fails:
        return Attempt(repair, after, Status.REPAIRED)
    difference = tuple(_difference(before, after))
    if difference:
        return Attempt(repair, after, Status.OUTPUT_DIFFERS, difference)
    was_wrong = bool(_shown(before, repair)) or bool(before.unpredicted)
    return Attempt(repair, after, Status.REPAIRED if was_wrong else Status.AS_BEFORE)


def _fails_by_itself(trial: Trial) -> bool:
    """Whether a run ended in an exception that has nothing to do with GPUs or processes, before a finding came true."""
    return trial.showed_nothing and is_of_programs(trial.seen.said)


def _shown(trial: Trial, repair: Repair) -> tuple[str, ...]:
    """What the repair is about and came true: failures, wrong devices, costs."""
    codes = {finding.code for finding in repair.findings}
    return tuple(one.why for one in trial.findings if one.status is Seen.CONFIRMED and one.finding.code in codes)


def _difference(before: Trial, after: Trial) -> Iterator[str]:
    """What was printed otherwise; the order of lines does not count, as that of workers is theirs."""
    left, right = before.printed, after.printed
    if sorted(left) == sorted(right):
        return
    lines = list(difflib.unified_diff(left, right, "as it is", "repaired", lineterm="", n=1))
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"... {len(lines) - _SHOWN} more lines"
