"""Registry, pages, fixtures, documents and changelog name the same rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cudalint
from cudalint import __version__, rules
from cudalint.machine.inheritance.prover import Prover

ROOT = Path(__file__).parent.parent
PACKAGE = Path(cudalint.__file__).parent
# Rules about the run itself have no program that shows them.
ABOUT_THE_RUN = {"CUD900", "CUD901", "CUD902"}
_CODE = re.compile(r"\bCUD\d{3}\b")


def codes_in(name: str) -> set[str]:
    return set(_CODE.findall((ROOT / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("code", rules.codes())
def test_a_rule_says_its_own_code_and_name(code: str) -> None:
    rule = rules.rule(code)
    assert rule.code == code
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    assert rule.summary
    assert not rule.summary.endswith(".")
    assert rules.page(code).splitlines()[0] == f"# {rule.name} ({code})"


def test_names_are_unique() -> None:
    names = [rule.name for rule in rules.registry().values()]
    assert sorted(names) == sorted(set(names))


def test_the_registry_is_the_list_of_modules() -> None:
    assert tuple(rules.registry()) == rules.codes()


def test_every_rule_has_its_fixtures() -> None:
    folders = {path.name for path in (ROOT / "fixtures").glob("CUD*") if path.is_dir()}
    assert folders == set(rules.codes()) - ABOUT_THE_RUN
    for folder in folders:
        programs = [path.name for path in (ROOT / "fixtures" / folder).iterdir()]
        assert any(name.startswith("broken_") for name in programs), folder
        assert any(name.startswith("ok_") for name in programs), folder


@pytest.mark.parametrize("name", ["CHANGELOG.md", "docs/rules.md"])
def test_documents_list_every_rule(name: str) -> None:
    assert codes_in(name) == set(rules.codes())


def test_the_list_of_rules_says_what_they_say() -> None:
    rows = [row for row in (ROOT / "docs/rules.md").read_text(encoding="utf-8").splitlines() if row.startswith("| CUD")]
    said = [f"| {r.code} | {r.name} | {r.severity.value} | {r.summary} |" for r in rules.registry().values()]
    assert sorted(rows) == said


@pytest.mark.parametrize("name", ["README.md", "docs/configuration.md", "docs/architecture.md"])
def test_documents_name_no_rule_that_does_not_exist(name: str) -> None:
    assert codes_in(name) <= set(rules.codes())


def test_the_changelog_knows_the_version() -> None:
    assert __version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_cudalint_prints(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program, *_) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (shown, *_) = re.findall(r"```console\n\$ cudalint check train.py\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "cudalint", "check", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == shown


def first_table(behind: str) -> list[str]:
    """The modules that lead the rows of the first table behind some words of docs/architecture.md, in their order."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text[text.index(behind) :].partition("\n| --- ")[2].partition("\n\n")[0]
    leading = [row.split("|")[1] for row in table.splitlines()[1:]]
    return [name for cell in leading for name in re.findall(r"`(\w+)\.py`", cell)]


@pytest.mark.parametrize(
    ("folder", "behind"),
    [
        ("machine", "\n## The machine\n"),
        ("machine/launch", "\n| module of `launch/` |"),
        ("machine/interpreter", "\n| module of `interpreter/` |"),
    ],
)
def test_the_architecture_names_each_module(folder: str, behind: str) -> None:
    modules = {path.stem for path in (PACKAGE / folder).glob("*.py")} - {"__init__"}
    assert sorted(first_table(behind)) == sorted(modules)


def test_the_architecture_has_the_parts_of_the_prover_in_their_order() -> None:
    parts = [part.__module__ for part in reversed(Prover.__mro__)]
    chain = [name for name in parts if name.startswith("cudalint.machine.inheritance.")]
    behind = "Each module of `machine/inheritance/` adds"
    assert first_table(behind) == [name.rpartition(".")[2] for name in chain]
    modules = {path.stem for path in (PACKAGE / "machine/inheritance").glob("*.py")} - {"__init__"}
    assert {*first_table(behind), *first_table("They share what is no machine")} == modules
