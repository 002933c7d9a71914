"""What the build of a compiled wheel rests on; the build itself takes minutes (``python -m bench.compiled``)."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tomli

import cudalint
from cudalint import fingerprint, machine, project
from cudalint.compiled import is_compiled
from cudalint.machine.interpreter.machine import Machine

ROOT = Path(__file__).resolve().parents[1]


def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomli.loads(text)["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    return found


def compiled_modules() -> set[str]:
    return {name.removesuffix(".py").replace("/", ".") for name in hook().modules_to_compile(ROOT, config())}


def test_a_wheel_is_pure_unless_it_is_asked_for() -> None:
    assert config()["enable-by-default"] is False
    assert not is_compiled()


def test_a_pattern_that_names_no_file_ends_the_build() -> None:
    with pytest.raises(ValueError, match=r"no file is named cudalint/missing\*"):
        hook().modules_to_compile(ROOT, {**config(), "modules": ["cudalint/missing*.py"]})


def classes(of: ModuleType) -> Iterator[type]:
    yield from (found for found in vars(of).values() if isinstance(found, type) and found.__module__ == of.__name__)


def test_no_interpreted_class_derives_from_a_compiled_one() -> None:
    compiled = compiled_modules()
    names = [
        found.name
        for package in (machine, project)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    assert compiled <= {*names}
    derived = {
        f"{cls.__module__}.{cls.__name__}"
        for name in names
        for cls in classes(importlib.import_module(name))
        if name not in compiled and any(base.__module__ in compiled for base in cls.__mro__)
    }
    assert derived == set()


def test_no_pattern_of_what_is_compiled_names_a_sequence_or_the_rest_of_one() -> None:
    # Compiled, ``(a, *rest)`` refuses the rest of a tuple, which is no list, and ``(a, b) as pair`` names ``b``.
    named = [
        f"{path}:{node.lineno}"
        for path, tree in compiled_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchStar | ast.MatchAs)
        and node.name is not None
        and (isinstance(node, ast.MatchStar) or isinstance(node.pattern, ast.MatchSequence | ast.MatchMapping))
    ]
    assert named == []


def test_nothing_that_is_compiled_combines_a_frozenset_with_keys() -> None:
    # Typeshed calls the result a frozenset, Python makes a set: compiled, this is a TypeError.
    def is_keys(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"

    combined = [
        f"{path}:{node.lineno}"
        for path, tree in compiled_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and is_keys(node.right) and not is_keys(node.left)
    ]
    assert combined == []


def test_no_field_of_what_is_compiled_is_of_a_class_that_stands_below() -> None:
    # Compiled, the class of a value keeps the classes of its fields, and there is none yet.
    below = [
        f"{path}:{field.lineno}"
        for path, tree in compiled_trees()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.annotation, ast.Name)
        for other in tree.body
        if isinstance(other, ast.ClassDef) and other.name == field.annotation.id and other.lineno > node.lineno
    ]
    assert below == []


def compiled_trees() -> Iterator[tuple[Path, ast.Module]]:
    for name in sorted(compiled_modules()):
        path = ROOT / f"{name.replace('.', '/')}.py"
        yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_no_name_of_what_is_compiled_is_assigned_and_stands_in_a_pattern_of_the_same_function() -> None:
    # Compiled, a name has one type in a function: that of its assignment is not asked for in patterns by mypy.
    def assigned(node: ast.AST) -> Iterator[str]:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))

    twice = [
        f"{path}:{function.name}: {node.name}"
        for path, tree in compiled_trees()
        for function in functions(tree)
        for names in [{name for node in ast.walk(function) for name in assigned(node)}]
        for node in ast.walk(function)
        if isinstance(node, ast.MatchAs) and node.name in names
    ]
    assert twice == []


def test_nothing_that_is_compiled_is_looked_for_in_a_generator() -> None:
    # Compiled, a generator has no ``in``.
    sought = []
    for path, tree in compiled_trees():
        generators = {
            f.name for f in functions(tree) if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(f))
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
                called = [c.func for c in node.comparators if isinstance(c, ast.Call)]
                names = {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in called}
                sought += [f"{path}:{node.lineno}"] if names & generators else []
    assert sought == []


def test_what_is_compiled_takes_nothing_apart_that_may_be_none() -> None:
    # Compiled, ``*_, last = (None, *found)`` has the type of what was found.
    apart = [
        f"{path}:{node.lineno}"
        for path, tree in compiled_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
        if any(isinstance(part, ast.Starred) for part in (*node.targets[0].elts, *node.value.elts))
    ]
    assert apart == []


def test_every_part_of_the_machine_is_a_room() -> None:
    rooms = {
        node.name
        for path in (ROOT / "cudalint" / "machine" / "interpreter").glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(mark, ast.Name) and mark.id == "room" for mark in node.decorator_list)
    }
    assert {base.__name__ for base in Machine.__bases__} == rooms


def test_a_library_beside_the_source_counts_for_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        fingerprint.analysis.cache_clear()
        return fingerprint.analysis()

    (tmp_path / "state.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(fingerprint, "_PACKAGE", str(tmp_path))
    try:
        pure = key()
        (tmp_path / "state.cpython-311-x86_64-linux-gnu.so").write_bytes(b"one")
        compiled = key()
        (tmp_path / "state.cpython-311-x86_64-linux-gnu.so").write_bytes(b"two")
        assert len({pure, compiled, key()}) == 3
    finally:
        monkeypatch.undo()
        fingerprint.analysis.cache_clear()


def test_the_source_that_is_run_is_that_of_the_checkout() -> None:
    assert Path(cudalint.__file__).parent == ROOT / "cudalint"
