"""Pieces of a program and how they are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Lines = list[str]


def indent(lines: Iterable[str], by: int = 1) -> Lines:
    """Lines one or more levels deeper."""
    return [("    " * by + line) if line else line for line in lines]


def block(head: str, body: Sequence[str]) -> Lines:
    """A compound statement; an empty body becomes `pass`."""
    return [head, *indent(body or ["pass"])]


@dataclass
class Draft:
    """A program in the making: imports, definitions, module-level statements, and what runs under the guard."""

    imports: set[str] = field(default_factory=set)
    definitions: list[Lines] = field(default_factory=list)
    constants: Lines = field(default_factory=list)
    globals: Lines = field(default_factory=list)
    guard: Lines = field(default_factory=list)
    main: Lines = field(default_factory=list)
    parameters: str = ""
    globals_last: bool = False

    def define(self, *lines: str) -> None:
        """Add a definition once."""
        if list(lines) not in self.definitions:
            self.definitions.append(list(lines))

    def text(self, title: str, framed: bool) -> str:
        """The whole program; `framed` puts what it does into a function main()."""
        out = [*self._top(title), "", ""]
        if framed:
            out += [*block(f"def main({self.parameters}):", self.main), "", ""]
            out += block('if __name__ == "__main__":', [*self.guard, "main()"])
        else:
            out += block('if __name__ == "__main__":', [*self.guard, *self.main])
        return "\n".join(out) + "\n"

    def module_text(self, title: str) -> str:
        """A file that only defines: what others import."""
        return "\n".join(self._top(title)) + "\n"

    def _top(self, title: str) -> Lines:
        out: Lines = [f'"""{title}"""', "", *_sorted_imports(self.imports)]
        for group in (self.constants, [] if self.globals_last else self.globals):
            out += ["", *group] if group else []
        for lines in self.definitions:
            out += ["", "", *lines]
        if self.globals_last and self.globals:
            out += ["", "", *self.globals]
        return out


_STANDARD = ("argparse", "concurrent", "functools", "multiprocessing", "os")


def _sorted_imports(imports: Iterable[str]) -> Lines:
    imports = _merged(imports)
    standard = [line for line in imports if line.split()[1].split(".")[0] in _STANDARD]
    others = [line for line in imports if line not in standard]
    first, second = sorted(standard, key=_order), sorted(others, key=_order)
    return [*first, *([""] if first and second else []), *second]


def _merged(imports: Iterable[str]) -> Lines:
    """One line for what comes from one module."""
    names: dict[str, set[str]] = {}
    for line in imports:
        head, _, what = line.partition(" import ") if line.startswith("from") else (line, "", "")
        names.setdefault(head, set()).update(what.split(", ") if what else ())
    return [f"{head} import {', '.join(sorted(what))}" if what else head for head, what in names.items()]


def _order(line: str) -> tuple[bool, str]:
    return (line.startswith("from"), line)
