"""Configuration, discovery, selection and per-file-ignores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cudalint import config
from cudalint.config import ConfigError
from cudalint.discovery import Exclusion, NotFound, discover
from cudalint.finding import Severity
from cudalint.policy.globs import Globs
from cudalint.policy.selection import Layer, Selection
from cudalint.session import Session

EVERYTHING = """
[project]
requires-python = ">=3.11"

[tool.cudalint]
select = ["CUD1"]
extend-select = ["CUD301"]
ignore = ["CUD102"]
exclude = ["old"]
extend-exclude = ["gen/*.py"]
target-version = "3.12-3.14"
platform = "darwin"
fail-on = "error"
models = ["models/own.toml"]
extra-paths = ["./models/"]

[tool.cudalint.per-file-ignores]
"tests/*" = ["CUD1"]
"""


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(tmp_path: Path, text: str) -> config.Config:
    write(tmp_path / "pyproject.toml", text)
    return config.load([str(tmp_path)])


def failure(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    return str(caught.value)


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "own.toml").write_text('[library]\nname = "own"\n')
    found = load(tmp_path, EVERYTHING)
    assert found.root == str(tmp_path)
    assert found.selection == Selection((Layer(("CUD1",), ("CUD301",), ("CUD102",)),))
    assert found.per_file_ignores == (("tests/*", ("CUD1",)),)
    assert found.exclude == ("old", "gen/*.py")
    assert found.target_versions == ((3, 12), (3, 14))
    assert found.platform == "darwin"
    assert found.fail_on is Severity.ERROR
    assert found.models == (str(tmp_path / "models/own.toml"),)
    assert found.extra_paths == (str(tmp_path / "models"),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('selct = ["CUD1"]', "unknown key 'selct' in [tool.cudalint] (did you mean 'select'?)"),
        ('select = ["CUD110"]', "unknown rule 'CUD110' in select (did you mean 'CUD108'?)"),
        ('ignore = "CUD101"', "ignore must be a list of strings"),
        ('extra-paths = ["no_such"]', "extra-paths: no such directory: no_such"),
        ('extra-paths = ["/"]', "extra-paths: / is all that the machine holds: name the folders of modules"),
        ('extra-paths = "lib"', "extra-paths must be a list of strings"),
        ('platform = "linus"', "unknown platform 'linus'"),
        ('fail-on = "warnings"', "did you mean 'warning'?"),
        ('target-version = "py27"', "unknown target-version 'py27'"),
        ('target-version = "3.13-3.10"', "unknown target-version"),
        ("target-version = 3.12", "target-version must be a string"),
        ('per-file-ignores = ["x"]', "per-file-ignores must be a table"),
        ('per-file-ignores = {"x" = "CUD1"}', "x must be a list of strings"),
        ("limits = 3", "limits must be a table of file-size, depth, steps, seconds, context-files, context-size"),
        ("limits = {step = 3}", "unknown key 'step' in limits (did you mean 'steps'?)"),
        ("limits = {steps = 0}", "limits: steps must be a number from 1 to 1000000"),
        ("limits = {depth = 201}", "limits: depth must be a number from 1 to 200"),
        ("limits = {seconds = true}", "limits: seconds must be a number from 1 to 86400"),
        ('limits = {file-size = "5MB"}', "limits: file-size must be a number from 1 to 256000000"),
        ("select = [", "not valid TOML"),
        ("select = " + "[" * 100_000, "not valid TOML: nested too deeply"),
        ('target-version = "3.99"', "unknown target-version '3.99': the last Python that is known is 3.16"),
        ('target-version = "3.10-3.99"', "the last Python that is known"),
        ('exclude = ["[z-a]"]', "exclude: invalid pattern '[z-a]': bad character range"),
        ('extend-exclude = [""]', "extend-exclude: an empty pattern"),
        ('extend-exclude = ["a\\u0000b"]', "extend-exclude: invalid pattern"),
        ('per-file-ignores = {"[z-a].py" = ["CUD1"]}', "per-file-ignores: invalid pattern"),
        ('force-exclude = "yes"', "force-exclude must be true or false"),
        ('models = ["/dev/zero"]', "/dev/zero: no model file: it is a device"),
        ('models = ["nothing.toml"]', "no model file: it cannot be read: No such file or directory"),
        ('models = ["deep.toml"]', "deep.toml: not valid TOML: nested too deeply"),
        ('models = ["circle.toml"]', "type own.A derives from itself: own.A -> own.B -> own.A"),
        ('models = ["tower.toml"]', "has more than 50 types above one another"),
    ],
)
def test_a_mistake_is_one_clear_line_that_names_the_file(tmp_path: Path, line: str, words: str) -> None:
    head = '[library]\nname = "own"\n'
    kinds = {"own.A": "own.B", "own.B": "own.A"}, {f"own.T{n}": f"own.T{n + 1}" for n in range(60)}
    for name, bases in zip(("circle", "tower"), kinds, strict=True):
        rows = "".join(f'[[type]]\nname = "{kind}"\nbases = ["{base}"]\n' for kind, base in bases.items())
        (tmp_path / f"{name}.toml").write_text(head + rows, encoding="utf-8")
    (tmp_path / "deep.toml").write_text(f"x = {'[' * 100_000}", encoding="utf-8")
    message = failure(tmp_path, f"[tool.cudalint]\n{line}\n")
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "pyproject.toml"))
    assert words in message


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("py310", ((3, 10), (3, 10))),
        ("3.12", ((3, 12), (3, 12))),
        ("py311-py314", ((3, 11), (3, 14))),
        ("3.10 - 3.13", ((3, 10), (3, 13))),
    ],
)
def test_target_versions(text: str, versions: config.Versions) -> None:
    assert config.parse_versions(text) == versions


@pytest.mark.parametrize(
    ("requires", "versions"),
    [
        (">=3.11", ((3, 11), (3, 14))),
        (">=3.9,<3.13", ((3, 9), (3, 12))),
        (">= 3.10, < 4", ((3, 10), (3, 14))),
        ("~=3.12", ((3, 12), (3, 14))),
        ("~=3.12.1", ((3, 12), (3, 12))),
        ("==3.*", ((3, 10), (3, 14))),
        (">=3.10,<3.14.2", ((3, 10), (3, 14))),
        (">=3.10,<3.14.0", ((3, 10), (3, 13))),
        (">=3.8,>=3.11,<=3.13,<3.14", ((3, 11), (3, 13))),
        ("==3.12.*", ((3, 12), (3, 12))),
        (">3.10, <=3.11", ((3, 10), (3, 11))),
        (">=3.16", ((3, 16), (3, 16))),
        ("", ((3, 10), (3, 14))),
        (">=2.7, !=3.0.*, !=3.1.*", ((3, 10), (3, 14))),
        ("<3.9", ((3, 8), (3, 8))),
        (">=3.8rc1, <=3.99", ((3, 8), (3, 14))),
    ],
)
def test_requires_python_is_the_default_target(tmp_path: Path, requires: str, versions: config.Versions) -> None:
    assert load(tmp_path, f'[project]\nrequires-python = "{requires}"\n').target_versions == versions


@pytest.mark.parametrize(
    ("requires", "words"),
    [
        ("'banana'", "'banana' is no version specifier such as '>=3.10'"),
        ("'>=3.10, about 3.12'", "'about 3.12' is no version specifier"),
        ("'^3.10'", "'^3.10' is no version specifier"),
        ("'>=3.99'", "requires-python '>=3.99' admits no Python that is known, up to 3.16"),
        ("'>=4'", "admits no Python that is known"),
        ("'==2.7.*'", "admits no Python that is known"),
        ("'>=3.12,<3.10'", "admits no Python that is known"),
        ("[3, 10]", "requires-python must be a string"),
    ],
)
def test_requires_python_that_admits_nothing_is_no_default(tmp_path: Path, requires: str, words: str) -> None:
    assert words in failure(tmp_path, f"[project]\nrequires-python = {requires}\n")


def test_a_program_imports_from_folders_outside_of_its_project(tmp_path: Path) -> None:
    program = (
        "from multiprocessing import Pool\nimport devices\n\n\ndef work(n):\n    return devices.put(n)\n\n\n"
        'if __name__ == "__main__":\n    devices.put(0)\n    with Pool(2) as pool:\n        pool.map(work, [1])\n'
    )
    project, library = tmp_path / "project", tmp_path / "lib"
    write(project / "main.py", program)
    # A finding in the library itself is not the project's.
    write(library / "devices.py", "import torch\n\n\ndef put(n):\n    return torch.ones(n).cuda()\n")
    write(library / "tool.py", program)

    def codes() -> list[tuple[str, str]]:
        report = Session(config.load([str(project)])).check([str(project)], repair=False)
        return [(Path(f.span.filename).name, f.code) for f in report.findings]

    write(project / "pyproject.toml", "[tool.cudalint]\n")
    assert codes() == []
    write(project / "pyproject.toml", '[tool.cudalint]\nextra-paths = ["../lib"]\n')
    assert codes() == [("main.py", "CUD101")]


def test_settings_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '\ufeff[tool.cudalint]\nplatform = "darwin"\n')
    assert config.load([str(tmp_path)]).platform == "darwin"


def test_a_program_may_leave_cuda_and_processes_to_folders_outside_of_its_project(tmp_path: Path) -> None:
    project, library = tmp_path / "project", tmp_path / "library/src"
    write(
        project / "main.py",
        "import scoring\n\n\ndef work(n):\n    return scoring.load(n)\n\n\n"
        'if __name__ == "__main__":\n    scoring.load(0)\n    scoring.run(work)\n',
    )
    write(project / "other.py", "import json\n\nprint(json.dumps({}))\n")
    write(
        library / "scoring/__init__.py",
        "import multiprocessing\nimport torch\n\n\ndef load(n):\n    return torch.ones(n).cuda()\n\n\n"
        "def run(function):\n    with multiprocessing.Pool(2) as pool:\n        pool.map(function, [1])\n",
    )
    write(project / "pyproject.toml", '[tool.cudalint]\nextra-paths = ["../library/src"]\n')

    def checked(name: str) -> list[str]:
        session = Session(config.load([str(project)]))
        return [f.code for f in session.check([str(project / name)], repair=False).findings]

    assert checked("") == checked("main.py") == ["CUD101"]
    assert checked("other.py") == []


def test_what_lies_above_the_nearest_table_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "this is no TOML")
    write(tmp_path / "inner/pyproject.toml", "[tool.cudalint]\n")
    assert config.load([str(tmp_path / "inner")]).root == str(tmp_path / "inner")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/pyproject.toml").symlink_to("pyproject.toml")
    with pytest.raises(ConfigError, match="a link leads back to itself"):
        config.load([str(tmp_path / "linked")])


def test_the_nearest_table_wins(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.cudalint]\nplatform = "win32"\n')
    write(tmp_path / "sub/pyproject.toml", '[tool.cudalint]\nplatform = "darwin"\n')
    write(tmp_path / "bare/pyproject.toml", "[tool.other]\n")
    named = write(tmp_path / "sub/a/x.py")
    assert config.load([str(named)]).platform == "darwin"
    assert config.load([str(tmp_path / "bare")]).platform == "win32"
    # Paths with nothing but the top in common are configured there.
    assert config.load([str(named), str(tmp_path / "bare")]).platform == "win32"


def test_without_pyproject_the_repository_is_the_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    found = config.load([str(write(tmp_path / "src/x.py"))])
    assert (found.root, found.source, found.target_versions) == (str(tmp_path), None, ((3, 10), (3, 13)))


@pytest.mark.parametrize(
    ("name", "text"),
    [("setup.py", "from setuptools import setup\n\nsetup(name='x')\n"), ("pytest.ini", "[pytest]\naddopts = -ra\n")],
)
def test_what_was_unpacked_without_its_repository_begins_at_a_file_of_its_top(
    tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path / name, text)
    named = [str(write(tmp_path / "src/x.py"))]
    assert config.load(named).root == str(tmp_path)
    (tmp_path / "src/.git").mkdir()
    assert config.load(named).root == str(tmp_path / "src")


@pytest.mark.parametrize(
    ("layers", "shown", "hidden"),
    [
        ([], "CUD101 CUD902", ""),
        ([Layer(select=("CUD1",))], "CUD101 CUD108 CUD900 CUD901", "CUD201 CUD902"),
        ([Layer(select=("CUD1", "CUD201"), ignore=("CUD10", "CUD2"))], "CUD201", "CUD101 CUD202"),
        ([Layer(ignore=("CUD1",)), Layer(extend_select=("CUD101",))], "CUD101 CUD201", "CUD102"),
        ([Layer(ignore=("CUD101",)), Layer(select=("CUD1",))], "CUD102", "CUD101 CUD201"),
        ([Layer(select=("CUD2",), ignore=("CUD101",)), Layer(select=("CUD1",))], "CUD101", "CUD201"),
        ([Layer(select=("CUD101",), ignore=("CUD101",))], "", "CUD101"),
        ([Layer(select=("ALL",), ignore=("CUD9",))], "CUD101", "CUD900 CUD901"),
        ([Layer(ignore=("ALL",), extend_select=("CUD501",))], "CUD501", "CUD101"),
    ],
)
def test_the_longer_prefix_wins(layers: list[Layer], shown: str, hidden: str) -> None:
    selection = Selection(tuple(layers))
    assert [code for code in shown.split() if not selection.shows(code)] == []
    assert [code for code in hidden.split() if selection.shows(code)] == []


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("tests", "/r/tests/a/x.py", True),
        ("tests", "/r/src/tests/x.py", True),
        ("tests/", "/r/tests/x.py", True),
        ("tests/*", "/r/tests/a/x.py", True),
        ("tests/**/*.py", "/r/tests/x.py", True),
        ("./src/*.py", "/r/src/x.py", True),
        ("*_gen.py", "/r/src/a_gen.py", True),
        ("**/gen.py", "/r/a/gen.py", True),
        ("**/gen.py", "/r/a/xgen.py", False),
        ("x.py", "/r/xx.py", False),
        ("src/x.py", "/r/lib/src/x.py", False),
        ("[xy].py", "/r/y.py", True),
        ("[!xy].py", "/r/y.py", False),
        ("[].py", "/r/[].py", True),
        ("a***b", "/r/axb", True),
        ("a*b*c.py", "/r/abbbc.py", True),
        ("a*b*c.py", "/r/acb.py", False),
        ("src/**/a/*.py", "/r/src/a/x.py", True),
        ("src/**/a/*.py", "/r/src/b/c/a/x.py", True),
        ("src/**/a/*.py", "/r/src/ba/x.py", False),
        ("**/a/**/b.py", "/r/x/a/b.py", True),
        ("**/a/**/b.py", "/r/a/xb.py", False),
        ("*[ab]*[cd]?.py", "/r/xbyc1.py", True),
        # One that would be tried in more ways than there are atoms.
        ("*a" * 60 + "b", "/r/" + "a" * 200, False),
        ("**/" * 60 + "x", "/r/" + "a/" * 100, False),
    ],
)
def test_globs(pattern: str, path: str, expected: bool) -> None:
    assert Globs((pattern,), "/r").covers(path, "/r") is expected


def names(tmp_path: Path, *paths: str, exclude: tuple[str, ...] = config.DEFAULT_EXCLUDE) -> list[str]:
    found = discover([str(tmp_path / path) for path in paths or (".",)], Exclusion(exclude), str(tmp_path))
    return [str(Path(path).relative_to(tmp_path)) for path in found]


def test_directories_are_walked_without_what_is_excluded_or_ignored(tmp_path: Path) -> None:
    for name in (
        "a.py",
        "b.pyi",
        "c.txt",
        "pkg/d.py",
        "build/e.py",
        ".venv/f.py",
        "out/g.py",
        "pkg/h.py",
        "pkg/keep.py",
    ):
        write(tmp_path / name)
    write(tmp_path / ".gitignore", "out/\n*keep.py\n")
    write(tmp_path / "pkg/.gitignore", "h.py\n!keep.py\n")
    assert names(tmp_path) == ["a.py", "pkg/d.py", "pkg/keep.py"]


def test_a_package_of_an_excluded_name_within_a_package_is_read(tmp_path: Path) -> None:
    for name in ("engine", "engine/dist", "engine/build", "build", "engine/build/dist"):
        write(tmp_path / name / "__init__.py")
        write(tmp_path / name / "a.py")
    write(tmp_path / "engine/venv/b.py")
    write(tmp_path / "dist/engine/__init__.py")

    def read(text: str) -> set[str]:
        write(tmp_path / "pyproject.toml", text)
        found = discover([str(tmp_path)], config.load([str(tmp_path)]).exclusion, str(tmp_path))
        return {str(Path(path).parent.relative_to(tmp_path)) for path in found}

    packages = {"engine", "engine/dist", "engine/build", "engine/build/dist"}
    assert read("[tool.cudalint]\n") == packages
    assert read('[tool.cudalint]\nextend-exclude = ["dist"]\n') == {"engine", "engine/build"}
    assert read('[tool.cudalint]\nexclude = ["dist", "build", "venv"]\n') == {"engine"}


def test_named_files_and_directories_are_always_read(tmp_path: Path) -> None:
    for name in ("build/a.py", "build/sub/b.py", "out/c.py", "build/.git/d.py", "script"):
        write(tmp_path / name)
    write(tmp_path / ".gitignore", "out/\n")
    assert names(tmp_path, "build") == ["build/a.py", "build/sub/b.py"]
    assert names(tmp_path, "out") == ["out/c.py"]
    assert names(tmp_path, "out/c.py", "script", "./script") == ["out/c.py", "script"]


def test_odd_things_on_the_way_are_stepped_over(tmp_path: Path) -> None:
    write(tmp_path / "x.py/inner.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "folder.py").symlink_to(tmp_path / "x.py")
    (tmp_path / ".#edited.py").symlink_to("me@here.1234")
    assert names(tmp_path) == ["x.py/inner.py"]


def test_what_cannot_be_followed_is_listed_so_that_its_reader_is_told(tmp_path: Path) -> None:
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert names(tmp_path) == ["dangling.py", "loop.py", "pipe.py"]
    with pytest.raises(NotFound):
        names(tmp_path, "dangling.py")


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing"):
        names(tmp_path, "nothing.py")
