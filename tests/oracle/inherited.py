"""What a forked worker has from its parent: state that main() sets, and that the worker reads.

Each kind is a few statements of main(), an expression of the worker, and the words by which the reason of a repair
may name it. Kinds without words are no difference to a fresh process.
"""

from __future__ import annotations

from dataclasses import dataclass

from oracle.text import Draft, Lines, block


@dataclass(frozen=True)
class State:
    """One kind of state.

    ``top`` stands in the program, ``settings`` in a second file that everything may import. ``around`` is a `with`
    statement around the launch, or what ``lead`` begins right before it; ``finish`` comes after it. ``marks`` begin
    the lines that the kind itself prints. ``once``: every read moves it on, so that the tasks of one process and of two
    differ in any case. ``loader``: whether it means something in a loader's worker, which torch seeds and limits to one
    thread. ``provable``: nothing is inherited, and so plainly that a repair has to be safe. ``handed``: the same of a
    process that is spawned, which has it from its parent; loky reuses its workers. ``carried``: a task leaves it to
    those after it in the same worker, so that no repair is safe where several share the tasks out. ``stays``: a worker
    leaves it in its own process, and the program looks at it afterwards, so that no repair is safe.
    """

    set: tuple[str, ...] = ()
    read: str = "0"
    words: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    top: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    around: str = ""
    finish: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    once: bool = False
    loader: bool = True
    provable: bool = False
    handed: bool = False
    carried: bool = False
    stays: bool = False

    @property
    def inherited(self) -> bool:
        """Whether a fresh process lacks it."""
        return bool(self.words) and not self.carried and not self.stays

    @property
    def portable(self) -> bool:
        """Whether code of another module can read it."""
        return not self.top


PLACES = ("inline", "function", "guard")


def render_set(draft: Draft, name: str, state: State, place: str) -> Lines:
    """Put what sets the state where it belongs; returns what stands in main()."""
    lines = list(state.set)
    if not lines or place == "inline":
        return lines
    if place == "guard":
        draft.guard.extend(line for line in lines if not line.startswith("global "))
        return []
    draft.define(*block(f"def set_{name}():", lines))
    return [f"set_{name}()"]
