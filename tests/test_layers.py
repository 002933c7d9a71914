"""Each part of cudalint knows only what stands above it, so that it can be understood without the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cudalint

PACKAGE = Path(cudalint.__file__).parent

# From what knows nobody to what knows everybody; docs/architecture.md describes them in this order.
LAYERS = (
    "module_path",  # imported before all others
    "garbage",  # counts for what is imported next
    "structs",
    "finding",
    "proof",
    "fingerprint",
    "secret",
    "store",
    "disk",
    "limits",
    "served",
    "models",
    "text",
    "ignored",
    "ignore_files",
    "settings_files",
    "ir",
    "project",
    "machine",
    "machine.gpu_memory",
    "machine.interpreter",
    "machine.reporting",
    "machine.launch",  # knows no library's effect
    "machine.effects",
    "machine.shapes",
    "machine.mapping",
    "machine.inheritance",
    "project.pythons",
    "project.entry_result",
    "project.chosen",
    "project.entry_store",
    "project.fixtures",  # runs what pytest puts around a test
    "project.prepared",
    "project.patience",
    "project.switches",
    "project.groups",
    "project.machines",  # makes them for entries
    "project.reached",
    "project.calling",  # imports modules and calls functions on them
    "project.tested",
    "project.started",
    "project.assumed",
    "project.process_map",
    "project.running",  # runs all entries in their order
    "project.worker",  # does so for another process
    "project.workers",
    "project.summary",
    "rules",
    "project.judging",  # asks the rules what outcomes are
    "project.analysis",  # drives the machine: the door to all above
    "project.beliefs",
    "deriving",
    "fixes",
    "policy",
    "discovery",
    "siblings",
    "config",
    "caching",
    "nearest",
    "config_schema",
    "context",
    "intake",
    "results",
    "found",
    "recalled",
    "salvage",
    "reruns",
    "unparsed",
    "lacks",
    "session",
    "history",
    "opening",
    "fixing",
    "report",
    "api",
    "verify",
    "server",
    "hosts",
)
# What rooms of the interpreter may import of it; machine.py puts them together.
SHARED = {"core", "entry", "hooks", "lineages", "program", "results", "spelling"}
THIRD_PARTY = {
    "libcst": ("ir", "project", "fixes"),
    "click": ("hosts",),
    "rich": ("report", "verify"),
    "lsprotocol": ("server",),
    "pygls": ("server",),
    "flake8": (),
}


@dataclass(frozen=True, slots=True)
class Module:
    """What these tests ask of a module: the dotted names that it imports, and the names that it calls."""

    name: str
    imports: tuple[str, ...]
    called: frozenset[str]


@cache
def modules() -> tuple[Module, ...]:
    """All of the package, read once: the trees take hundreds of megabytes. A wheel has fixtures in it, too."""
    files = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "_fixtures")
    return tuple(map(module, sorted(files)))


def module(path: Path) -> Module:
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    called = frozenset(function.id for function in calls if isinstance(function, ast.Name))
    return Module(name, tuple(imports(nodes)), called)


def imports(nodes: list[ast.AST]) -> Iterator[str]:
    """The dotted names that a module imports, wherever the import stands."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name: str) -> int | None:
    """Where a module stands; the root package itself (the version) is everybody's."""
    places = [
        (len(prefix), index) for index, prefix in enumerate(LAYERS) if name == prefix or name.startswith(f"{prefix}.")
    ]
    return max(places)[1] if places else None


def test_every_module_has_a_layer() -> None:
    homeless = [one.name for one in modules() if layer(one.name) is None and one.name not in {"__init__", "__main__"}]
    assert homeless == []


def test_every_layer_has_modules() -> None:
    names = [one.name for one in modules()]
    empty = [layer for layer in LAYERS if not any(f"{name}.".startswith(f"{layer}.") for name in names)]
    assert empty == []


def test_imports_point_upwards() -> None:
    wrong = []
    for one in modules():
        own = layer(one.name)
        for imported in one.imports:
            if own is None or not imported.startswith("cudalint."):
                continue
            other = layer(imported.removeprefix("cudalint."))
            if other is not None and other > own:
                wrong.append(f"{one.name} imports {imported}")
    assert wrong == []


def test_rules_do_not_know_each_other() -> None:
    wrong = [
        f"{one.name} imports {imported}"
        for one in modules()
        for imported in one.imports
        if one.name.startswith("rules.cud") and imported.startswith("cudalint.rules.cud")
    ]
    assert wrong == []


def test_rooms_of_the_interpreter_do_not_know_each_other() -> None:
    home = "machine.interpreter"
    rooms = {one.name for one in modules() if one.name.startswith(f"{home}.")} - {f"{home}.{name}" for name in SHARED}
    wrong = [
        f"{one.name} imports {imported}"
        for one in modules()
        for imported in one.imports
        if one.name in rooms - {f"{home}.machine"}
        and imported.startswith(f"cudalint.{home}.")
        and imported.split(".")[3] not in SHARED
    ]
    assert len(rooms) > 5
    assert wrong == []


def test_third_party_packages_stay_where_they_belong() -> None:
    wrong = []
    for one in modules():
        for imported in one.imports:
            homes = THIRD_PARTY.get(imported.split(".")[0])
            if homes is not None and one.name.split(".")[0] not in homes:
                wrong.append(f"{one.name} imports {imported}")
    assert wrong == []


def test_only_verify_could_run_user_code() -> None:
    running = {"exec", "eval", "compile", "__import__"}
    assert [one.name for one in modules() if not one.name.startswith("verify") and one.called & running] == []


def test_who_speaks_to_editors_loads_no_parser() -> None:
    """The server is two processes; the one that never waits needs nothing of what the other analyses with."""
    known = {one.name: one for one in modules()}
    reached: set[str] = set()
    waiting = ["server.language_server"]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in known:
            continue
        reached.add(name)
        own = (found.removeprefix("cudalint.") for found in known[name].imports)
        waiting.extend(place for found in own for place in (found, found.rpartition(".")[0]))
    assert "finding" in reached
    assert [name for name in sorted(reached) if any(one.startswith("libcst") for one in known[name].imports)] == []
