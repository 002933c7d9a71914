"""What a map says of a process, in words that all its formats share; every text is harmless on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from cudalint.finding import Severity
from cudalint.machine.started import Deed
from cudalint.project.process_map import (
    Begins,
    Carried,
    Event,
    Harm,
    Lack,
    Launch,
    Place,
    ProcessMap,
    ProcessNode,
    Tree,
)
from cudalint.report import plain
from cudalint.structs import Frozen

MOST_NAMES = 3
MOST_VALUES = 3


class Tone(Enum):
    """What a row is about, for its colour."""

    PLAIN = "plain"
    CUDA = "cuda"
    CROSSING = "crossing"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Row(Frozen):
    """One thing that is said of a process: a word that says what kind of thing, the thing, and where it stands."""

    word: str
    text: str
    tone: Tone
    place: Place | None = None


class View(Frozen):
    """From where a tree is looked at: the folder that paths are shown from, and the file that goes without saying."""

    directory: str
    filename: str

    def where(self, place: Place | None) -> str:
        """A place as people and editors read it; empty for none."""
        if place is None:
            return ""
        cell = "" if place.cell is None else f"cell {place.cell}:"
        if place.filename == self.filename:
            return f"{cell}{place.row}" if cell else f"line {place.row}"
        return f"{plain.place(place.filename, self.directory)}:{cell}{place.row}"


_DEEDS = {
    Deed.DRIVER: "cuda",
    Deed.CONTEXT: "gpu",
    Deed.DEVICE: "device",
    Deed.GROUP: "group",
    Deed.METHOD: "method",
    Deed.THREAD: "thread",
}


def title(tree: Tree, directory: str) -> str:
    """What begins the first process."""
    path = plain.place(tree.filename, directory)
    names = ", ".join(plain.plain(f"{name}()") if name else "its import" for name in tree.names[:MOST_NAMES])
    if len(tree.names) > MOST_NAMES:
        names += f" and {len(tree.names) - MOST_NAMES} more"
    match tree.begins:
        case Begins.PROGRAM:
            return f"{path}, a notebook" if path.endswith(".ipynb") else f"python {path}"
        case Begins.SERVER:
            return f"{path}, imported by a server"
        case Begins.COMMAND:
            return f"{names} of {path}, a command"
        case Begins.TEST:
            return f"pytest {path}: {names}"
        case Begins.CALLER:
            return f"{names} of {path}, by a caller that is not in sight"


def drawn(found: ProcessMap) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """The trees to draw, and those of which a line is enough.

    These are processes by themselves in which nothing goes wrong, where there are others.
    """
    quiet = tuple(tree for tree in found.trees if tree.process.is_quiet)
    if len(quiet) == len(found.trees):
        return quiet, ()
    return tuple(tree for tree in found.trees if not tree.process.is_quiet), quiet


ALONE = "Processes that start no other, and where each first uses CUDA"


def briefly(tree: Tree, directory: str) -> tuple[str, str]:
    """A process by itself: what begins it, and what it does first, with the place."""
    row = next(rows(tree.process))
    return title(tree, directory), f"{row.text}  {View(directory, tree.filename).where(row.place)}".rstrip()


def lack(one: Lack, directory: str) -> str:
    """What the map may lack, on one line."""
    if one.filename is None:
        return plain.plain(one.message)
    return f"{plain.place(one.filename, directory)}: {plain.plain(one.message)}"


def how(launch: Launch) -> str:
    """How many workers start, and by which method."""
    if launch.method == "exec":
        return "another program"
    perhaps = "" if launch.certain else ", perhaps"
    when = f" {launch.condition}" if launch.condition else ""
    chosen = "" if launch.explicit or launch.condition else ", the default"
    return plain.plain(f"{launch.workers} by {launch.method}{perhaps}{when}{chosen}")


def kind(node: ProcessNode) -> str:
    """What the process is called."""
    return plain.plain(node.label)


def launcher(launch: Launch) -> str:
    """What starts the process."""
    return plain.plain(launch.launcher)


def rows(node: ProcessNode) -> Iterator[Row]:
    """All that is said of a process, the launch first."""
    if node.launch is not None:
        yield from _of_launch(node.launch)
    for event in node.events:
        yield _of_event(event)
    known = {row.place for row in _of_launch(node.launch)} if node.launch is not None else set()
    for harm in node.harmed:
        yield from (row for row in _of_harm(harm) if row.word != "because" or row.place not in known)


def _of_launch(launch: Launch) -> Iterator[Row]:
    if launch.forks and launch.before is not None:
        yield Row("after", plain.plain(launch.before.message), Tone.CUDA, launch.before.place)
    for function in launch.runs:
        word = "prepares" if function.prepares else "runs"
        yield Row(word, plain.plain(function.name), Tone.PLAIN, function.place)
    for carried in launch.carries:
        yield _of_value(carried)
    for variable in launch.environment:
        if variable.value is not None:
            yield Row("variable", plain.plain(f"{variable.name}={variable.value}"), Tone.CROSSING)
    unknown = [variable.name for variable in launch.environment if variable.value is None]
    if unknown:
        yield Row("variable", plain.plain(", ".join(unknown)), Tone.CROSSING)


def _of_value(carried: Carried) -> Row:
    what = ", ".join(carried.what[:MOST_VALUES]) + (", …" if len(carried.what) > MOST_VALUES else "")
    named = f"{carried.name}: {what}" if carried.name else what
    there = f" on {carried.device}" if carried.device else ""
    tone = Tone.CUDA if carried.device else Tone.CROSSING
    return Row("is sent" if carried.pickled else "inherits", plain.plain(f"{named}{there}"), tone, carried.origin)


def _of_event(event: Event) -> Row:
    detail = f" ({event.detail})" if event.detail and event.detail not in event.message else ""
    there = ", in a thread" if event.in_thread else ""
    tone = Tone.PLAIN if event.deed in (Deed.METHOD, Deed.GROUP, Deed.THREAD) else Tone.CUDA
    return Row(_DEEDS[event.deed], plain.plain(f"{event.message}{detail}{there}"), tone, event.place)


def _of_harm(harm: Harm) -> Iterator[Row]:
    finding = harm.finding
    tone = tone_of(finding.severity)
    known = " (in the baseline)" if harm.known else ""
    yield Row(finding.severity.value, f"{finding.code}{known} {plain.statement(finding)}", tone, harm.place)
    for word, ends in (("because", harm.causes), ("where", harm.effects)):
        for message, place in ends[-1:]:
            yield Row(word, plain.plain(message), tone, place)


def tone_of(severity: Severity) -> Tone:
    """The colour of a finding."""
    match severity:
        case Severity.ERROR:
            return Tone.ERROR
        case Severity.WARNING:
            return Tone.WARNING
        case Severity.NOTE:
            return Tone.NOTE


def worst(node: ProcessNode) -> Severity | None:
    """The worst finding about a process itself."""
    return max((harm.finding.severity for harm in node.harmed), key=lambda severity: severity.rank, default=None)


NOTHING = "No process is started here, so there is nothing to draw.\n"
