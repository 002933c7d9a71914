"""A map of processes as a tree of lines, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from cudalint.project.process_map import ProcessMap, ProcessNode
from cudalint.report.console import console
from cudalint.report.maps import words
from cudalint.report.maps.words import Row, Tone, View

_COLOURS = {
    Tone.PLAIN: "",
    Tone.CUDA: "green",
    Tone.CROSSING: "cyan",
    Tone.ERROR: "red",
    Tone.WARNING: "yellow",
    Tone.NOTE: "cyan",
}
_WIDTH = max(len(word) for word in ("inherits", "prepares", "variable", "warning"))


def render(found: ProcessMap, directory: str, *, colour: bool) -> str:
    """One tree after another, a blank line between them."""
    shown = console(colour=colour)
    with shown.capture() as capture:
        trees, quiet = words.drawn(found)
        for tree in trees:
            shown.print(Text(words.title(tree, directory), style="bold"))
            for line in _below(tree.process, "", View(directory, tree.filename)):
                shown.print(line)
            shown.print()
        if quiet:
            shown.print(Text(f"{words.ALONE}:", style="bold"))
        for tree in quiet:
            name, told = words.briefly(tree, directory)
            shown.print(Text.assemble(f"  {name}: ", (told, "green")))
        if quiet and found.lacks:
            shown.print()
        if not found.trees:
            shown.print(words.NOTHING, end="")
        for lack in found.lacks:
            shown.print(Text(f"note: {words.lack(lack, directory)}", style="dim"))
    return capture.get()


def _below(node: ProcessNode, margin: str, view: View) -> Iterator[Text]:
    """What is said of a process, and the processes that it starts."""
    stem = "│ " if node.children else "  "
    for row in words.rows(node):
        yield _line(row, margin + stem, view)
    for number, child in enumerate(node.children, 1):
        is_last = number == len(node.children)
        yield _head(child, margin + ("└─ " if is_last else "├─ "), view)
        yield from _below(child, margin + ("   " if is_last else "│  "), view)


def _head(node: ProcessNode, margin: str, view: View) -> Text:
    launch = node.launch
    assert launch is not None
    severity = words.worst(node)
    style = "bold" if severity is None else f"bold {_COLOURS[words.tone_of(severity)]}"
    place = view.where(launch.at[0] if launch.at else launch.made)
    return Text.assemble(
        (margin, "blue"), (words.launcher(launch), style), f": {words.how(launch)}", (f"  {place}".rstrip(), "dim")
    )


def _line(row: Row, margin: str, view: View) -> Text:
    colour = _COLOURS[row.tone]
    place = view.where(row.place)
    return Text.assemble(
        (margin, "blue"), (f"{row.word:<{_WIDTH}} ", "dim"), (row.text, colour), (f"  {place}".rstrip(), "dim")
    )
