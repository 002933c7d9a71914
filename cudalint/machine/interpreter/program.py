"""What the machine runs, and where: the program as the machine asks for it, and the Python that would run it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Protocol

from cudalint.ir import nodes as ir
from cudalint.limits import DEFAULT, Limits
from cudalint.machine.toplevel import Bindings
from cudalint.models.releases import Admitted
from cudalint.structs import Frozen

# Which versions have which default on Linux; one of the two is always so.
BY_FORK, BY_SERVER = "before Python 3.14", "from Python 3.14"


class Program(Protocol):
    """What the machine asks of the project."""

    def module(self, name: str, within: bool = False) -> ir.Module | None:
        """A lowered module of the project by its dotted name; ``within`` another import, or else for the entry."""

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The name of the project's module that an import means; None for libraries."""

    def is_library(self, module: str) -> bool:
        """Whether a module belongs to a library that is itself the project, as its metadata says."""

    def admitted(self, package: str) -> Admitted:
        """The releases of a package that the project is used with, as far as its files name them."""

    def below_library(self, importer: str, library: str, name: str) -> str | None:
        """The project's module that ``from library import name`` means, in a folder called as the library is."""

    def child(self, package: str, name: str) -> str | None:
        """The submodule of this name in a package of the project."""

    def modules_called(self, name: str) -> tuple[str, ...]:
        """The modules of packages that have this name within them."""

    def submodules(self, package: str) -> tuple[str, ...]:
        """The modules that lie directly in a package of the project."""

    def modules_below(self, package: str) -> tuple[str, ...]:
        """The modules that lie directly in a package which is called so, wherever it is."""

    def functions_of(self, name: str) -> tuple[str, ...]:
        """The functions that the top of a module defines, without those whose names begin with an underscore."""

    def preloads(self, name: str) -> frozenset[tuple[str, str]]:
        """The applications of a module that servers make before they fork, as files say, and which server."""

    def applications(self, beside: str) -> tuple[tuple[str, str], ...]:
        """The modules beside a file, and below, that make a web application when they are imported, and its name."""

    def parents(self, name: str) -> tuple[str, ...]:
        """The packages that are imported before a module, the outermost first."""

    def importing_package(self, name: str) -> str | None:
        """The outermost package of a module that it imports, and that imports the module: None where it has none."""

    def package(self, name: str) -> str | None:
        """The package that a module lies in, or is."""

    def effectful_imports(self, name: str) -> tuple[str, ...]:
        """The modules whose top level may do something to the process when ``name`` is imported."""

    def is_notebook(self, module: str) -> bool:
        """Whether a module is a notebook, which runs in the main module of a kernel."""

    def is_named(self, word: str) -> bool:
        """Whether some file of the project has this word."""

    def is_package_main(self, module: str) -> bool:
        """Whether a module is what ``python -m package`` runs, which no child of that process imports again."""

    def is_run_in(self, notebook: str, module: str) -> bool:
        """Whether a magic of a notebook runs a module in the kernel, whose main module then holds what that defines."""

    def may_launch(self, module: str) -> bool:
        """Whether something that a rule judges may start in the code of a module, or of one that it imports."""

    def settles(self, module: str, function: ir.Function) -> bool:
        """Whether a function of a module may start something or decide how it goes, itself or by what it names."""

    def module_at(self, module: str | None, main: str, parts: tuple[str, ...]) -> str | None:
        """The module of the file that lies there, from the folder of a module's file or from where a program starts."""

    def settings(self, module: str | None, main: str, parts: tuple[str, ...]) -> str | None:
        """The text of a file of settings, from the folder of a module's file or from where a program is started.

        None where there is none, or not one alone.
        """

    def note(self, *texts: str) -> None:
        """Note what was not looked at."""

    def set_by_main(self, module: str, main: str) -> Mapping[str, bool]:
        """Names that a module's main guard or functions set, and whether its import binds them as well."""

    @property
    def gathered(self) -> dict[tuple[str, int | None], tuple[Bindings | ir.Stmt, ...]]:
        """The bodies of modules, and of classes by their number, with what only binds names gathered."""


# No version of Python has had so many releases.
LAST_MICRO = 99
_ORDERS: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Host(Frozen):
    """The Python versions in range and the platform, which decide the default start method; how far is looked."""

    lowest: tuple[int, int] = (3, 10)
    highest: tuple[int, int] = (3, 13)
    platform: str = "linux"
    limits: Limits = DEFAULT

    def compares(self, op: str, wanted: tuple[int, ...]) -> bool | None:
        """``sys.version_info op wanted``; None where that depends on which version in range it is."""
        order = _ORDERS.get(op)
        if order is None or op in ("==", "!="):
            return None
        verdicts = {
            order((*version, micro), wanted) for version, micro in ((self.lowest, 0), (self.highest, LAST_MICRO))
        }
        return verdicts.pop() if len(verdicts) == 1 else None

    def compares_minor(self, op: str, wanted: int) -> bool | None:
        """``sys.version_info.minor op wanted``; None where that depends on which version in range it is."""
        order = _ORDERS.get(op)
        if order is None or self.lowest[0] != self.highest[0]:
            return None
        verdicts = {order(minor, wanted) for minor in range(self.lowest[1], self.highest[1] + 1)}
        return verdicts.pop() if len(verdicts) == 1 else None

    def defaults(self) -> list[tuple[str, str | None]]:
        """The default start methods in range, each with the condition under which it is the one."""
        if self.platform != "linux":
            return [("spawn", None)]
        result: list[tuple[str, str | None]] = []
        mixed = self.lowest < (3, 14) <= self.highest
        if self.lowest < (3, 14):
            result.append(("fork", BY_FORK if mixed else None))
        if self.highest >= (3, 14):
            result.append(("forkserver", BY_SERVER if mixed else None))
        return result
