"""A map of processes in languages that draw graphs: Mermaid, and Graphviz's dot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudalint.finding import Severity
from cudalint.project.process_map import ProcessMap, ProcessNode
from cudalint.report.maps import words
from cudalint.report.maps.words import Row, View
from cudalint.structs import Frozen

# A row of a box; what is longer is cut.
_WIDEST = 100
# Mermaid would wrap at half of that.
_WIDE = '%%{init: {"flowchart": {"wrappingWidth": 480}}}%%'
# What Mermaid may take for its own: all that is neither a letter nor one of these is written as a number.
_HARMLESS = re.compile(r"[^\w .,:=+*/…()-]")


_COLOURS = {Severity.ERROR: "#c62828", Severity.WARNING: "#b26a00", Severity.NOTE: "#0277bd"}


class _Box(Frozen):
    """A process with its number, and that of the process that starts it."""

    number: int
    parent: int | None
    node: ProcessNode
    lines: tuple[str, ...]


def mermaid(found: ProcessMap, directory: str) -> str:
    """A flowchart, as Markdown renderers draw it."""
    lines = [_WIDE, "flowchart LR"]
    styled: dict[Severity, list[str]] = {}
    for number, (title, boxes) in enumerate(_boxes(found, directory)):
        lines.append(f'  subgraph t{number}["{_entities(title)}"]')
        for box in boxes:
            text = "<br/>".join(_entities(line) for line in box.lines)
            lines.append(f'    p{box.number}["{text}"]')
        for box in boxes:
            lines.extend(_mermaid_edge(box))
            severity = words.worst(box.node)
            if severity is not None:
                styled.setdefault(severity, []).append(f"p{box.number}")
        lines.append("  end")
    for shown, colour in _COLOURS.items():
        if shown in styled:
            lines.append(f"  classDef {shown.value} stroke:{colour},stroke-width:3px")
            lines.append(f"  class {','.join(styled[shown])} {shown.value}")
    return "\n".join(lines) + "\n"


def _mermaid_edge(box: _Box) -> Iterator[str]:
    launch = box.node.launch
    if launch is None:
        return
    arrow = "==>" if launch.forks else "-->"
    label = f"{_entities(words.launcher(launch))}<br/>{_entities(words.how(launch))}"
    yield f'    p{box.parent} {arrow}|"{label}"| p{box.number}'


def dot(found: ProcessMap, directory: str) -> str:
    """A directed graph; forks are drawn thick."""
    lines = [
        "digraph processes {",
        '  graph [fontname="sans-serif"];',
        '  node [shape=box, fontname="sans-serif"];',
        '  edge [fontname="sans-serif"];',
    ]
    for number, (title, boxes) in enumerate(_boxes(found, directory)):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f'    label="{_quoted(title)}";')
        for box in boxes:
            text = "".join(f"{_quoted(line)}\\l" for line in box.lines)
            severity = words.worst(box.node)
            colour = "" if severity is None else f', color="{_COLOURS[severity]}", penwidth=3'
            lines.append(f'    p{box.number} [label="{text}"{colour}];')
        for box in boxes:
            launch = box.node.launch
            if launch is not None:
                label = f"{_quoted(words.launcher(launch))}\\n{_quoted(words.how(launch))}"
                style = ", penwidth=3" if launch.forks else ""
                lines.append(f'    p{box.parent} -> p{box.number} [label="{label}"{style}];')
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(found: ProcessMap, directory: str) -> Iterator[tuple[str, list[_Box]]]:
    """The processes of each tree that is worth a drawing, numbered through."""
    number = 0
    for tree in words.drawn(found)[0]:
        view = View(directory, tree.filename)
        boxes: list[_Box] = []
        stack: list[tuple[ProcessNode, int | None]] = [(tree.process, None)]
        while stack:
            node, parent = stack.pop()
            lines = (words.kind(node), *(_line(row, view) for row in words.rows(node)))
            boxes.append(_Box(number, parent, node, lines))
            stack.extend((child, number) for child in reversed(node.children))
            number += 1
        yield words.title(tree, directory), boxes


def _line(row: Row, view: View) -> str:
    text = row.text if len(row.text) <= _WIDEST else f"{row.text[: _WIDEST - 1]}…"
    return f"{row.word}: {text} {view.where(row.place)}".rstrip()


def _entities(text: str) -> str:
    return _HARMLESS.sub(lambda found: f"#{ord(found[0])};", text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
