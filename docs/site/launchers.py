"""What the shipped models know, as the last part of docs/launchers.md.

``python docs/site/launchers.py`` writes it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

import cudalint.models

PAGE = Path(__file__).resolve().parent.parent / "launchers.md"
MARK = "<!-- What follows is written by docs/site/launchers.py. -->\n"
# What models say of functions that start something, or hand work to what was started.
_THREADS = frozenset({"thread", "thread.call", "thread.trials"})
_HANDS = frozenset({"executor.loop", "pool.apply", "pool.map", "queue.enqueue"})
_PROCESSES = frozenset(
    {
        "cluster", "celery.app", "celery.worker", "engine", "environments", "executor", "fork", "fork-launcher",
        "gunicorn.run", "isolated", "keras.fit", "loader", "manager", "parallel", "pool", "pool.once", "process",
        "queue.work",
        "search", "search.validate", "server.fork", "spawn", "spawn.elastic", "text-pipe", "trainer.fit",
        "transformers.train", "workers",
    }
)  # fmt: skip
_SELECTS = frozenset({"group.engine", "group.select", "set-device", "visible"})
_MAKES = frozenset({"estimator", "module.init", "move", "placed", "tensor"})
_GPU = {
    "query": "asks the driver: later forks cannot use CUDA",
    "driver": "opens the driver",
    "init": "initialises CUDA",
    "use": "initialises CUDA",
    "touch": "fails in a forked child, and does nothing else",
    "told": "is told to use the GPU later",
}
_WIDEST = 12


@dataclass(frozen=True, slots=True)
class Known:
    """What one file of models knows: of which versions, from where, and what it says of functions, by their names."""

    title: str
    versions: str
    evidence: str
    entries: tuple[Mapping[str, Any], ...]

    @property
    def how(self) -> str:
        """How it is known, in one or two words."""
        words = self.evidence.lower()
        seen = "x h200" in words or words.startswith("h200")
        if "not measured" in words or "not with these" in words or (not seen and "source" in words):
            return "read in their sources, not measured"
        return "measured" if seen else "documentation and reports"


def models() -> Iterator[Known]:
    """The shipped files that know of launchers or GPUs."""
    for path in sorted(Path(cudalint.models.__file__).parent.glob("*.toml")):
        document = tomli.loads(path.read_text(encoding="utf-8"))
        entries = tuple(entry for entry in document.get("function", ()) if _own(entry) and any(_columns(entry)))
        head = document["library"]
        if entries:
            yield Known(head["name"], head.get("versions", ""), head.get("evidence", ""), entries)


def _columns(entry: Mapping[str, Any]) -> Iterator[str]:
    """What a function does to processes and GPUs, in the words of the page."""
    does, gpu = entry["does"], entry.get("gpu", "none")
    if does in _PROCESSES and entry.get("library") != "threading":
        yield f"starts processes, by {entry['method']}" if "method" in entry else "starts processes"
    if does in _HANDS:
        yield "gives workers work"
    if does in _THREADS or entry.get("library") == "threading":
        yield "starts threads"
    if does == "fresh-process":
        yield "starts another program"
    if gpu != "none":
        yield _GPU[gpu]
    elif does in _MAKES:
        yield "makes or moves what may lie on a GPU"
    if does in _SELECTS or "selects" in entry:
        yield "selects a GPU"


def generated() -> str:
    """The part of the page that follows the mark."""
    return "".join(_sections())


def _sections() -> Iterator[str]:
    yield (
        "\n## What the models know\n\nBy the files of models, with the versions that they were written for. *Measured* "
        "means that\nprograms were run on GPUs. Names with `*` stand for all methods.\n"
    )
    for known in models():
        yield f"\n### {known.title[:1].upper()}{known.title[1:]}\n\n"
        yield f"{known.versions}. Known from: {known.how} ({known.evidence}).\n"
        yield "\n| package | what it does | functions |\n| --- | --- | --- |\n"
        for (package, title), names in _rows(known.entries):
            yield f"| {package} | {title} | {_listed(names)} |\n"
        said = [(name, entry["evidence"]) for entry in known.entries if "evidence" in entry for name in _own(entry)[:1]]
        if said:
            yield "\n" + "".join(f"- `{name}`: {evidence}\n" for name, evidence in said)


def _rows(entries: Iterable[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    rows: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        for title in _columns(entry):
            for name in _own(entry):
                package = name.removeprefix("import ").partition(".")[0]
                rows.setdefault((package, title), set()).add(name)
    order = ("starts", "gives", "asks", "opens", "init", "is told", "makes", "selects", "fails")
    for key in sorted(
        rows, key=lambda key: (key[0], next(i for i, w in enumerate(order) if key[1].startswith(w)), key)
    ):
        yield key, sorted(rows[key])


def _own(entry: Mapping[str, Any]) -> list[str]:
    """The names of functions that a program may write."""
    hidden = ("cudalint.", "?.")
    return [name.removesuffix(".__get__") for name in entry["names"] if not name.startswith(hidden)]


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_WIDEST])
    return shown if len(names) <= _WIDEST else f"{shown} and {len(names) - _WIDEST} more"


def written() -> str:
    """The whole page: what people wrote, and what the models know now."""
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{PAGE} has no mark behind which models are listed"
    return before + mark + generated()


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
