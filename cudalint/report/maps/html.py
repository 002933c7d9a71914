"""A map of processes as one page that needs no network and runs no code.

The source lines behind an edge show while the pointer is over it or the keyboard has it; on paper they always show.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from cudalint.project.process_map import Launch, Place, ProcessMap, ProcessNode
from cudalint.report.maps import words
from cudalint.report.maps.words import Row, View
from cudalint.report.plain import plain

# The parts of the page are text of programs: nothing in them may load or run anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #59636e; --card: #f6f8fa; --line: #8c959f;
  --cuda: #1a6b2f; --crossing: #0a5c9e; --error: #b3261e; --warning: #8a5300; --note: #0a5c9e; --shade: #0003; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9aa4af; --card: #161b22; --line: #6e7781; --cuda: #5fd07a;
    --crossing: #79b8ff; --error: #ff8a80; --warning: #f0b352; --note: #79b8ff; --shade: #000a; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { width: max-content; min-width: 100%; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font: 600 1.05rem/1.4 ui-monospace, monospace; margin: 2rem 0 .75rem; overflow-wrap: anywhere; }
/* The page is as wide as its widest tree; words never make it wider than the window. */
h2, .quiet { max-width: min(80rem, calc(100vw - 4.5rem)); }
p { color: var(--faint); margin: .25rem 0; max-width: min(70ch, calc(100vw - 4.5rem)); overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding: 0; }
.node { display: flex; align-items: flex-start; }
.children { position: relative; padding-left: 2.5rem; display: flex; flex-direction: column; gap: 1.25rem; }
.children::before { content: ""; position: absolute; left: 0; top: 1.5rem; width: 1.25rem;
  border-top: 2px solid var(--line); }
.children > li { position: relative; }
.children > li::before { content: ""; position: absolute; left: -1.25rem; top: 1.5rem; width: 1.25rem;
  border-top: 2px solid var(--line); }
.children > li:not(:last-child)::after { content: ""; position: absolute; left: -1.25rem; top: 1.5rem; bottom: -2.75rem;
  border-left: 2px solid var(--line); }
.edge { position: relative; flex: none; width: 14rem; margin-right: 2rem; padding: .5rem .75rem; border-radius: .5rem;
  border: 2px dashed var(--line); background: var(--paper); overflow-wrap: anywhere; }
.edge.fork { border-style: solid; border-color: var(--ink); }
.edge::after { content: "\\25B6"; position: absolute; right: -2rem; width: 2rem; top: .75rem; text-align: right;
  color: var(--line); background: linear-gradient(var(--line), var(--line)) no-repeat 0 50% / 1.4rem 2px;
  line-height: 1.4; }
.edge strong { display: block; font-family: ui-monospace, monospace; }
.edge span { color: var(--faint); }
.edge:focus-visible { outline: 3px solid var(--crossing); outline-offset: 2px; }
.source { display: none; position: absolute; z-index: 1; left: -2px; top: calc(100% + 2px); width: min(44rem, 90vw);
  padding: .75rem; border-radius: .5rem; border: 1px solid var(--line); background: var(--paper);
  box-shadow: 0 .5rem 2rem var(--shade); }
.edge:hover, .edge:focus { z-index: 2; }
.edge:hover .source, .edge:focus .source, .edge:focus-within .source { display: block; }
figure { margin: 0 0 .75rem; } figure:last-child { margin: 0; }
figcaption { color: var(--faint); font-size: .85rem; overflow-wrap: anywhere; }
pre { margin: .15rem 0 0; padding: .4rem .6rem; border-radius: .35rem; background: var(--card); overflow-x: auto;
  font: .85rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.card { flex: none; width: 28rem; border: 1px solid var(--line); border-left-width: .35rem; border-radius: .5rem;
  background: var(--card); padding: .6rem .8rem; }
.card.error { border-color: var(--error); } .card.warning { border-color: var(--warning); }
.card.note { border-color: var(--note); }
.card h3 { margin: 0 0 .35rem; font-size: 1rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 4rem minmax(0, 1fr); gap: .2rem .75rem; margin: 0; }
dt { color: var(--faint); font-size: .85rem; padding-top: .1rem; } dd { margin: 0; overflow-wrap: anywhere; }
dd small { color: var(--faint); font-family: ui-monospace, monospace; margin-left: .35rem; display: inline-block; }
.cuda { color: var(--cuda); } .crossing { color: var(--crossing); }
dd.error, dt.error { color: var(--error); } dd.warning, dt.warning { color: var(--warning); }
dd.note, dt.note { color: var(--note); }
.quiet small { color: var(--cuda); font-size: .9rem; } .quiet li { overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; }
@media (max-width: 70rem) {
  main { width: auto; }
  .node { flex-direction: column; align-items: stretch; }
  .card, .edge { width: auto; max-width: 46rem; }
  .edge { margin: 0 0 .5rem; }
  .edge::after { display: none; }
  .children { padding: 1rem 0 0 1.75rem; }
  .children::before { display: none; }
  .children > li:not(:last-child)::after { top: -1rem; }
  .children > li:last-child::after { content: ""; position: absolute; left: -1.25rem; top: -1rem; height: 2.5rem;
    border-left: 2px solid var(--line); }
}
@media (max-width: 40rem) {
  body { padding: .75rem; } h2, .quiet, p { max-width: calc(100vw - 1.5rem); }
  .children { padding-left: 1rem; }
  .children > li::before { left: -.75rem; width: .75rem; }
  .children > li:not(:last-child)::after, .children > li:last-child::after { left: -.75rem; }
  .source { width: 100%; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --faint: #444; --card: #fff; --line: #666; --cuda: #064;
    --crossing: #036; --error: #900; --warning: #630; --note: #036; }
  body { padding: 0; font-size: 10pt; }
  main { width: auto; } h2, .quiet, p { max-width: none; }
  .node { flex-direction: column; align-items: stretch; }
  .card, .edge { width: auto; break-inside: avoid; }
  .edge { margin: 0 0 .5rem; } .edge::after { display: none; }
  .children { padding: 1rem 0 0 1.75rem; } .children::before { display: none; }
  .source { display: block; position: static; width: auto; border: 0; box-shadow: none; padding: .35rem 0 0; }
}
"""


def render(found: ProcessMap, directory: str) -> str:
    """The whole page."""
    return "".join(_page(found, directory))


def _page(found: ProcessMap, directory: str) -> Iterator[str]:
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Processes</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Processes</h1>\n"
    )
    yield (
        "<p>Each box is a process, or several that do the same. A solid edge is a fork, which copies its parent; a "
        "dashed one begins afresh. Point at an edge, or reach it by the Tab key, to see the lines behind it.</p>\n"
    )
    trees, quiet = words.drawn(found)
    for tree in trees:
        yield f"<section>\n<h2>{escape(words.title(tree, directory))}</h2>\n"
        yield from _node(tree.process, View(directory, tree.filename))
        yield "</section>\n"
    if quiet:
        yield f'<section>\n<h2>{words.ALONE}</h2>\n<ul class="quiet">\n'
        for tree in quiet:
            name, told = words.briefly(tree, directory)
            yield f"<li>{escape(name)}: <small>{escape(told)}</small></li>\n"
        yield "</ul>\n</section>\n"
    if not found.trees:
        yield f"<p>{escape(words.NOTHING.strip())}</p>\n"
    if found.lacks:
        notes = "".join(f"<p>{escape(words.lack(lack, directory))}</p>\n" for lack in found.lacks)
        yield f"<footer>\n<h2>What the map may lack</h2>\n{notes}</footer>\n"
    yield "</main>\n</body>\n</html>\n"


def _node(node: ProcessNode, view: View) -> Iterator[str]:
    """A process with the edge that leads to it, and what it starts."""
    yield '<div class="node">\n'
    if node.launch is not None:
        yield from _edge(node.launch, view)
    yield from _card(node, view)
    if node.children:
        yield '<ul class="children">\n'
        for child in node.children:
            yield "<li>\n"
            yield from _node(child, view)
            yield "</li>\n"
        yield "</ul>\n"
    yield "</div>\n"


def _edge(launch: Launch, view: View) -> Iterator[str]:
    style = "edge fork" if launch.forks else "edge"
    yield (
        f'<div class="{style}" tabindex="0" role="note"><strong>{_breakable(words.launcher(launch))}</strong>'
        f"<span>{escape(words.how(launch))}</span>\n"
    )
    figures = [_figure(word, place, view) for word, place in _behind(launch)]
    if figures:
        yield f'<div class="source">{"".join(figures)}</div>'
    yield "</div>\n"


def _breakable(name: str) -> str:
    """A dotted name that may go on in the next line after a dot."""
    return escape(name).replace(".", ".<wbr>")


def _behind(launch: Launch) -> Iterator[tuple[str, Place]]:
    """The lines that an edge rests on, in the order in which they come to pass, and what each is for."""
    before = launch.before.place if launch.before is not None and launch.forks else None
    given = [("CUDA was used before", before), ("the start method is chosen", launch.settled)]
    given.append(("the launcher is made", launch.made))
    given.extend(("the workers are given work", place) for place in launch.at)
    given.extend(("the workers run this", function.place) for function in launch.runs)
    found: dict[tuple[str, int | None, int], list[tuple[str, Place]]] = {}
    for word, place in given:
        if place is not None:
            found.setdefault((place.filename, place.cell, place.row), []).append((word, place))
    for same in found.values():
        longest = max((place for _, place in same), key=lambda place: len(place.rows))
        yield ", ".join(dict.fromkeys(word for word, _ in same)), longest


def _figure(word: str, place: Place, view: View) -> str:
    code = "\n".join(_code(row) for row in _outdented(place.rows))
    shown = f"<pre>{escape(code)}</pre>" if code else ""
    return f"<figure><figcaption>{word}: {escape(view.where(place))}</figcaption>{shown}</figure>"


def _outdented(rows: tuple[str, ...]) -> tuple[str, ...]:
    margin = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
    return tuple(row[margin:] for row in rows)


def _code(row: str) -> str:
    return plain(row.replace("\t", "    ").rstrip())


def _card(node: ProcessNode, view: View) -> Iterator[str]:
    severity = words.worst(node)
    style = "card" if severity is None else f"card {severity.value}"
    yield f'<article class="{style}"><h3>{escape(words.kind(node))}</h3>\n<dl>\n'
    for row in words.rows(node):
        yield _row(row, view)
    yield "</dl></article>\n"


def _row(row: Row, view: View) -> str:
    place = view.where(row.place)
    there = f" <small>{escape(place)}</small>" if place else ""
    tone = row.tone.value
    return f'<dt class="{tone}">{row.word}</dt><dd class="{tone}">{escape(row.text)}{there}</dd>\n'
