"""The documents: links lead somewhere, what is made from code is up to date, site and CI files are valid."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import tomli
import yaml

from cudalint import rules
from cudalint.report import links

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TOP = ("README.md", "SECURITY.md", "CHANGELOG.md")
WRITTEN = sorted([*(ROOT / name for name in TOP), *DOCS.glob("*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]\[]*\]\(([^)\s]+)\)")


def load(name: str) -> ModuleType:
    """A module of the folder of the site, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def prose(text: str) -> Iterator[str]:
    """The rows of a page outside of its blocks of code."""
    in_code = False
    for row in text.splitlines():
        if row.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield row


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them of plain words."""
    headings = [row.lstrip("#").strip() for row in prose(path.read_text(encoding="utf-8")) if row.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    broken = []
    for row in prose(path.read_text(encoding="utf-8")):
        for target in _LINK.findall(row):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            if not there.exists() or (anchor and anchor not in anchors(there)):
                broken.append(target)
    assert broken == []


def test_what_models_know_is_written_down() -> None:
    launchers = load("launchers")
    assert launchers.PAGE.read_text(encoding="utf-8") == launchers.written(), "run python docs/site/launchers.py"


def test_each_model_file_with_launchers_is_named_with_how_it_is_known() -> None:
    known = list(load("launchers").models())
    assert {"torch", "multiprocessing", "joblib", "servers"} <= {one.title for one in known}
    assert {one.how for one in known} == {
        "measured",
        "read in their sources, not measured",
        "documentation and reports",
    }
    assert next(one.how for one in known if one.title == "torch") == "measured"
    assert next(one.how for one in known if one.title == "workers") == "read in their sources, not measured"


# -- the site ----------------------------------------------------------------------------------------------------


def known_pages() -> frozenset[str]:
    pages = {path.name for path in DOCS.glob("*.md")} | {"index.md", "security.md", "changelog.md"}
    return frozenset(pages | {f"rules/{code}.md" for code in rules.codes()})


def test_the_navigation_names_every_page_once() -> None:
    text = (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r": (\S+\.md)$", text, re.MULTILINE)
    assert sorted(named) == sorted(page for page in known_pages() if not page.startswith("rules/"))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_pages_of_the_site_link_to_pages_of_the_site(path: Path) -> None:
    hooks = load("hooks")
    page = hooks.TOP.get(path.name, path.name)
    text = re.sub(r"^<!-- map: .* -->$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    adapted = hooks.adapted(text, page, known_pages())
    targets = {
        t.partition("#")[0] for row in prose(adapted) for t in _LINK.findall(row) if not re.match(r"[a-z]+:|#", t)
    }
    assert targets <= known_pages()


def test_what_pages_show_of_the_repository_is_there() -> None:
    named = re.findall(r"^<!-- (?:map|file): (\S+)", "\n".join(p.read_text("utf-8") for p in WRITTEN), re.MULTILINE)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_drawn_program_is_a_frame_and_text() -> None:
    hooks = load("hooks")
    adapted = hooks.adapted("<!-- map: fixtures/CUD301/broken_executor_submit.py -->\n", "thinking.md", known_pages())
    assert adapted.startswith('<iframe src="../maps/CUD301-broken_executor_submit.html" title="python fixtures/CUD301/')
    assert "    └─ ProcessPoolExecutor.submit: 1 process by fork" in adapted
    program = ROOT / "fixtures" / "CUD301" / "broken_executor_submit.py"
    assert hooks.processes(program, str(ROOT), hooks.MapFormat.HTML).startswith("<!DOCTYPE html>")


def test_codes_lead_to_the_pages_of_rules() -> None:
    adapt = load("hooks").adapted
    known = known_pages()
    linked = "[CUD101](rules/CUD101.md)"
    assert adapt("CUD101 and `CUD102\nCUD103`, [CUD101](x.md)\n", "faq.md", known) == (
        f"{linked} and `CUD102\nCUD103`, {linked}\n"
    )
    assert adapt("CUD101/broken_x, fixtures/CUD101\n", "faq.md", known) == "CUD101/broken_x, fixtures/CUD101\n"
    assert adapt("CUD101, CUD102\n", "rules/CUD101.md", known) == "CUD101, [CUD102](CUD102.md)\n"
    assert adapt("# CUD101\n```\nCUD101\n```\n", "faq.md", known) == "# CUD101\n```\nCUD101\n```\n"
    assert adapt("[a](../tests/conftest.py) [b](../README.md#use)\n", "map.md", known) == "a [b](index.md#use)\n"


def test_a_page_of_a_rule_has_its_processes_a_repair_and_the_evidence() -> None:
    page = load("hooks").rule_page("CUD101")
    assert page.startswith("# cuda-in-forked-worker (CUD101)\n")
    assert "Pool.map: 2 processes by fork" in page
    assert "Pool.map: 1 process by spawn" in page
    assert re.search(r"^## A repair, as it was run$.*^\+.*spawn", page, re.MULTILINE | re.DOTALL)
    assert page.rstrip().rpartition("\n## ")[2].startswith("Evidence\n")


def test_every_error_message_of_the_questions_names_a_rule_or_says_why_not() -> None:
    sections = re.split(r"^### ", (DOCS / "faq.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(sections) > 25
    without = [section.splitlines()[0] for section in sections if not re.search(r"\bCUD\d{3}\b", section)]
    assert without == [
        "DeprecationWarning: This process is multi-threaded, use of fork() may lead to deadlocks in the child",
    ]


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    given = ["--strict", "--quiet", "-f", str(DOCS / "site" / "mkdocs.yml"), "-d", str(tmp_path / "site")]
    surroundings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", *given]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for code in rules.codes():
        page = links.rule(code).removeprefix(links.DOCUMENTATION)
        assert f"({code})" in (tmp_path / "site" / page / "index.html").read_text("utf-8")
    assert "maps/CUD301-broken_executor_submit.html" in (tmp_path / "site/thinking/index.html").read_text("utf-8")


def test_addresses_are_those_of_the_project() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project["urls"]
    assert (urls["Homepage"], urls["Documentation"]) == (links.HOME, links.DOCUMENTATION)
    assert f"site_url: {links.DOCUMENTATION}\n" in (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    made = load("hooks").pages()
    pages = {f"{links.DOCUMENTATION}{page.removesuffix('.md')}/" for page in made}
    assert {links.rule(code) for code in rules.codes()} < pages
    assert urls["Changelog"] in pages
    extension = json.loads((DOCS / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    assert (extension["homepage"], extension["bugs"]) == (links.DOCUMENTATION, urls["Issues"])
    assert extension["repository"]["url"] == f"{links.HOME}.git"


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "ci").glob("*"))])
def test_who_installs_from_the_repository_is_sent_there(path: Path) -> None:
    text = "" if path.is_dir() else path.read_text(encoding="utf-8")
    assert "example.org" not in text
    for named in re.findall(r"(?:git\+|repo: )(https://[^\s@'\"]+)", text):
        assert named == links.HOME
    for named in re.findall(r"uses: (\S+)/docs/ci/action@", text):
        assert f"https://github.com/{named}" == links.HOME


# -- commands ----------------------------------------------------------------------------------------------------

_COMMAND = re.compile(
    r"^\$ (cudalint .*)$|`(cudalint [^`]+)`|(?:bin/|- |commands = )(cudalint [^'\n]*)'?$", re.MULTILINE
)
_ENDS = re.compile(r"\s(?:\|\||\||&&|[<>;])\s")


def commands_in(text: str) -> list[list[str]]:
    """The arguments of all commands that a page shows."""
    named = (next(filter(None, found)).replace("\\|", "|") for found in _COMMAND.findall(text))
    return [shlex.split(_ENDS.split(f"{one} ")[0], comments=True)[1:] for one in named]


@pytest.mark.parametrize(
    "path",
    [*WRITTEN, DOCS / "editors" / "README.md", *(path for path in sorted((DOCS / "ci").iterdir()) if path.is_file())],
    ids=lambda path: path.name,
)
def test_commands_that_pages_show_have_these_options(run: Run, path: Path) -> None:
    for arguments in commands_in(path.read_text(encoding="utf-8")):
        if arguments and arguments[0] != "COMMAND":
            own = arguments[: arguments.index("--")] if "--" in arguments else arguments
            done = run(*own, "--help")
            assert (done.returncode, done.stderr) == (0, ""), arguments


def test_a_page_that_shows_an_option_which_is_none_is_noticed(run: Run) -> None:
    (own,) = commands_in("$ cudalint check --no-such-option .  # wrong\n")
    assert run(*own, "--help").returncode == 2


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_what_pages_show_of_a_program_is_what_is_printed(run: Run, tmp_path: Path, page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (program, *_) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    compared = 0
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for told in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = told.partition("\n")
            if printed.strip():
                assert run(*shlex.split(command)[1:]).stdout.strip() == printed.strip(), command
                compared += 1
    assert compared == {"README.md": 1, "docs/start.md": 4}[page]


# -- CI ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("vendor.github-actions", "action/action.yml"),
        ("vendor.github-workflows", "github.yml"),
        ("vendor.github-workflows", "github-gpu.yml"),
        ("vendor.gitlab-ci", "gitlab.yml"),
        ("vendor.gitlab-ci", "gitlab-gpu.yml"),
    ],
)
def test_files_for_ci_are_valid(schema: str, name: str) -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(DOCS / "ci" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_give_the_action_only_inputs_that_it_has() -> None:
    action = yaml.safe_load((DOCS / "ci" / "action" / "action.yml").read_text(encoding="utf-8"))
    for name in ("github.yml", "github-gpu.yml"):
        workflow = yaml.safe_load((DOCS / "ci" / name).read_text(encoding="utf-8"))
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        (step,) = (step for step in steps if step.get("uses", "").startswith("cudalint/"))
        assert step.get("with", {}).keys() <= action["inputs"].keys()
    page = (DOCS / "integrations.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in action["inputs"])


def test_scripts_of_the_action_hold_no_text_that_others_choose() -> None:
    """An expression in a script would be text of the script, whatever a branch or an input is called."""
    action = yaml.safe_load((DOCS / "ci" / "action" / "action.yml").read_text(encoding="utf-8"))
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert len(scripts) == 4
    assert not any("${{" in script for script in scripts)


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A folder of a runner in which cudalint is installed as the action installs it."""
    command = tmp_path / "temp" / "cudalint" / "bin" / "cudalint"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cudalint "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def checked(runner: Path, project: Path, **inputs: str) -> dict[str, str]:
    """What the step that checks gives, run by bash as a runner does."""
    action = yaml.safe_load((DOCS / "ci" / "action" / "action.yml").read_text(encoding="utf-8"))
    (script,) = (step["run"] for step in action["runs"]["steps"] if step.get("id") == "check")
    output = runner / "output"
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(runner / "temp"),
        "GITHUB_OUTPUT": str(output),
        "PATHS": ".",
        "ARGUMENTS": "",
        "SINCE": "",
        "BASE": "",
        "CUDALINT_CACHE_DIR": str(runner / "temp" / ".cudalint_cache"),
        **inputs,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=project, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())


def test_the_action_checks_and_tells_the_exit_code(runner: Path, forked: str) -> None:
    project = runner / "project"
    project.mkdir()
    (project / "train.py").write_text(forked, encoding="utf-8")
    given = checked(runner, project, ARGUMENTS="--select CUD1 --isolated")
    assert given["exit-code"] == "1"
    document = json.loads(Path(given["sarif"]).read_text(encoding="utf-8"))
    assert [result["ruleId"] for result in document["runs"][0]["results"]] == ["CUD101"]


def test_inputs_of_the_action_are_words_and_never_commands(runner: Path, forked: str) -> None:
    project = runner / "project"
    project.mkdir()
    (project / "train.py").write_text(forked, encoding="utf-8")
    given = checked(runner, project, PATHS="train.py; touch$IFS'owned' $(touch owned)", SINCE="none")
    assert given["exit-code"] == "2"
    assert [path.name for path in project.iterdir()] == ["train.py"]
