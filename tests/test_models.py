"""Models: the shipped ones are sound, and users add, refuse and replace models through the command line."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli

import cudalint.models
from cudalint.finding import Severity
from cudalint.machine.effects.registry import EFFECTS
from cudalint.models.library import load
from cudalint.models.schema import DOES, FUNCTION_KEYS, TRAITS
from cudalint.project.analysis import Options, analyse
from cudalint.project.markers import Text, may_launch, worth_a_look
from cudalint.text.source import SourceFile

Run = Callable[..., "subprocess.CompletedProcess[str]"]

OWN = """
[library]
name = "engine"

[[function]]
names = ["engine.run_forked"]
does = "fork-launcher"
method = "fork"
function = "function"
workers = "workers"
params = ["function", "workers"]

[[function]]
names = ["engine.Model.__init__", "engine.warm_up"]
does = "gpu"
gpu = "init"
"""
PROGRAM = """
import engine


def work():
    engine.warm_up()


if __name__ == "__main__":
    {before}
    engine.run_forked(work, workers=2)
"""


def project(folder: Path, models: str, **programs: str) -> None:
    (folder / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["own.toml"]\n')
    (folder / "own.toml").write_text(models)
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)


def found(run: Run) -> list[tuple[str, str, int]]:
    entries = json.loads(run("check", "--output-format", "json").stdout)
    return [(Path(e["filename"]).stem, e["code"], e["location"]["row"]) for e in entries]


def test_a_launcher_and_a_function_that_touches_the_gpu(run: Run, tmp_path: Path) -> None:
    # No word of these programs speaks of CUDA or processes but those of the models.
    warm, cold = PROGRAM.format(before="engine.warm_up()"), PROGRAM.format(before="print('ready')")
    project(tmp_path, OWN, warm=warm, cold=cold)
    assert found(run) == [("warm", "CUD104", 11)]


def test_an_own_function_poisons_forks_of_other_libraries(run: Run, tmp_path: Path) -> None:
    text = "import engine\nfrom multiprocessing import Pool\n\nengine.warm_up()\nwith Pool(2) as pool:\n"
    project(tmp_path, OWN, main=text + "    pool.map(engine.warm_up, [1])\n")
    assert found(run) == [("main", "CUD101", 6)]


def test_a_model_replaces_the_one_that_is_shipped(run: Run, tmp_path: Path, forked: str) -> None:
    project(tmp_path, '[library]\nname = "own"\n', train=forked)
    assert [code for _, code, _ in found(run)] == ["CUD101"]
    spared = '[[function]]\nnames = ["torch.Tensor.cuda", "?.cuda", "torch.zeros", "torch.ones"]\ndoes = "nothing"\n'
    project(tmp_path, '[library]\nname = "own"\n' + spared, train=forked)
    assert found(run) == []


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (OWN.replace('gpu = "init"', 'gpu = "init"\nconext = true'), "unknown key 'conext'; did you mean 'context'?"),
        (OWN.replace('"fork-launcher"', '"fork-lancher"'), "nothing is known that does 'fork-lancher'; did you mean"),
        (OWN.replace('gpu = "init"', 'gpu = "initialise"'), "gpu must be one of driver, init"),
        ("[library]\n", "[library] needs a name"),
        (
            OWN + 'state = "proces"\n',
            "state must be one of draws, folder, kept, loaded, none, path, process, scope, seed, weights, "
            "not 'proces'; did you mean",
        ),
        (OWN + '[[effect]]\nnames = ["a.b"]\ngives = "old"\n', "effect a.b: gives must be one of new, value"),
        (OWN.replace('gpu = "init"', 'gpu = "init"\nreleases = "engine"'), "releases must be a package and a range"),
        (OWN + '[[effect]]\nnames = ["a.b"]\nstat = "none"\n', "unknown key 'stat'; did you mean 'state'?"),
        (OWN + '[[effect]]\nnames = ["a.b"]\npickle = "no"\n', "effect a.b: pickle must be one of never, not 'no'"),
        (OWN + '[[trait]]\nnames = ["a.b"]\nis = "wait"\n', "trait a.b: is must be one of added-by-system"),
        (OWN + '[[trait]]\nnames = ["a.b"]\n', "trait a.b: is is missing: it names the trait"),
        (OWN + '[[trait]]\nnames = ["a.b"]\nis = "waits"\nplace = "0"\n', "trait a.b: place must be a int, not '0'"),
        (OWN + '[arguments]\ncalls = ["key"]\n', "unknown key 'calls'; did you mean 'called'?"),
        (OWN + '[environment]\nengine = "ENGINE_*"\n', "environment.engine must be a list of names of variables"),
        (
            OWN + '[alias]\n"a.c" = "a.b"\n[[effect]]\nnames = ["a.b"]\n[[effect]]\nnames = ["a.c"]\nstate = "seed"\n',
            "a.c is said to leave two different things behind in its process",
        ),
        ('[library]\nname = "own"\nalias = 3\n[alias]\n', "own.toml"),
        (OWN + '[pickler]\nengine = "dill"\n', "pickler.engine must be one of"),
        (OWN + '[[type]]\nbases = ["a.b"]\n', "a [[type]] needs a name"),
        (OWN + '[[function]]\nnames = "a.b"\ndoes = "gpu"\n', "a [[function]] needs names, a list of dotted names"),
        (OWN.replace('gpu = "init"', 'gpu = "init"\ncontext = 3'), "context must be a bool, not 3"),
        (OWN + '[[function]]\nnames = ["a.b"]\n', "does is missing: it names what the function does"),
        (OWN + 'failure = { body = "boom" }\n', "failure.body must be one of"),
        (OWN + 'failure = "crash"\n', "failure"),
        ('alias = "x"\n' + OWN, "[alias] must be a table"),
        ('function = "x"\n[library]\nname = "own"\n', "[[function]] must be a list of tables"),
        ('function = ["x"]\n[library]\nname = "own"\n', "[[function]] must be a list of tables"),
    ],
)
def test_a_mistake_in_a_model_is_one_line_that_names_file_and_place(
    run: Run, tmp_path: Path, models: str, words: str
) -> None:
    project(tmp_path, models, main="x = 1\n")
    done = run("check")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "own.toml" in done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("name", ["get_prediction", "get_sliced_prediction"])
def test_what_a_model_says_of_a_function_is_no_guess(name: str) -> None:
    text = (
        "from multiprocessing import Pool\nfrom sahi import AutoDetectionModel\nfrom sahi.predict import {name}\n"
        "model = AutoDetectionModel.from_pretrained('ultralytics')\ndef work(path):\n    return {name}(path, model)\n"
        "if __name__ == '__main__':\n    with Pool(2) as pool:\n        pool.map(work, ['a'])\n"
    )

    def severities(program: str) -> list[Severity]:
        source = SourceFile("main.py", program, program.encode())
        return [finding.severity for finding in analyse((source,), Options()).findings]

    assert severities(text.format(name=name)) == [Severity.ERROR]
    assert severities(text.format(name="count_all")) == [Severity.WARNING]


def test_a_model_file_that_is_missing(run: Run, tmp_path: Path) -> None:
    project(tmp_path, OWN, main="x = 1\n")
    (tmp_path / "own.toml").unlink()
    done = run("check")
    assert done.returncode == 2
    assert "no model file" in done.stderr
    assert "Traceback" not in done.stderr


# Effects that change the process itself: all of what has one is inherited by a fork and missing in a fresh process.
STATEFUL = {
    "set-device": "process",
    "default-device": "process",
    "growth": "process",
    "visible": "process",
    "group": "process",
    "group.destroy": "process",
    "group.select": "process",
    "group.engine": "process",
    "accelerator": "process",
    "transformers.arguments": "process",
    "environ.set": "process",
    "environ.delete": "process",
    "environ.update": "process",
    "device.enter": "scope",
    "default.enter": "scope",
}
# What such functions are called, whatever their model says they do.
SETTERS = re.compile(
    r"(^|\.)(set_(?!_|defaults|start_method|executable|forkserver|visible_devices_)\w+|manual_seed\w*|seed\w*)$"
)


def shipped_functions() -> list[tuple[str, dict[str, object]]]:
    folder = Path(cudalint.models.__file__).parent
    documents = [tomli.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))]
    return [(name, entry) for d in documents for entry in d.get("function", ()) for name in entry["names"]]


def test_what_changes_its_process_says_so() -> None:
    library = load()
    found = Counter(str(entry["does"]) for _, entry in shipped_functions())
    assert set(STATEFUL) <= found.keys()
    for name, entry in shipped_functions():
        expected = STATEFUL.get(str(entry["does"]))
        if expected is not None:
            effect = library.process_effect(name)
            assert effect is not None
            assert effect.state == expected, name


def test_what_is_called_a_setter_or_a_seed_leaves_something() -> None:
    library = load()
    setters = [name for name, _ in shipped_functions() if SETTERS.search(name)]
    assert len(setters) > 20
    for name in setters:
        effect = library.process_effect(name)
        assert effect is not None
        assert effect.state != "none", name


def test_what_an_effect_says_is_what_is_found() -> None:
    """No alias, no model of the same function and no wider name takes its place."""
    library = load()
    folder = Path(cudalint.models.__file__).parent
    entries = [e for path in sorted(folder.glob("*.toml")) for e in tomli.loads(path.read_text()).get("effect", ())]
    exact = [(name, entry) for entry in entries for name in entry["names"] if not name.endswith("*")]
    assert len(exact) > 500
    for name, entry in exact:
        found = library.process_effect(name)
        assert found is not None
        told = (entry.get("state", "none"), entry.get("gives", ""), entry.get("shows", False), entry.get("pickle"))
        assert (found.state, found.gives, found.shows, None if found.pickles else "never") == told, name


def test_users_say_better_what_a_function_leaves(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[library]\nname = "own"\n[[effect]]\nnames = ["keras.utils.set_random_seed"]\nstate = "none"\n')
    name = "tensorflow.keras.utils.set_random_seed"
    before, after = (load(paths).process_effect(name) for paths in ((), (str(own),)))
    assert before is not None
    assert after is not None
    assert (before.state, after.state) == ("seed", "none")


def test_what_reads_the_environment_at_its_import_is_known() -> None:
    library = load()
    assert library.reads_at_import("torch", "PYTORCH_CUDA_ALLOC_CONF")
    assert library.reads_at_import("logging", "PYTHONWARNINGS")
    assert library.reads_at_import("of_which_nothing_is_known", "RUN_NAME")
    assert not library.reads_at_import("torch", "RUN_NAME")


def test_a_trait_of_ones_own_keeps_a_repair_from_being_safe(run: Run, tmp_path: Path) -> None:
    # Each worker that imports the module again would have the report at its end, too.
    program = (
        "import multiprocessing\n\nimport engine\nimport torch\n\n\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item()\n\n\nengine.at_end()\nif __name__ == '__main__':\n"
        "    print(torch.zeros(1, device='cuda'))\n"
        "    with multiprocessing.Pool(1) as pool:\n        print(pool.map(work, [1]))\n"
    )
    known = '[library]\nname = "engine"\n[[effect]]\nnames = ["engine.at_end"]\n'
    trait = '[[trait]]\nnames = ["{}"]\nis = "runs-at-end"\n'
    cases = [("", "safe"), *((trait.format(name), "unsafe") for name in ("engine.at_end", "engine.**", "**.at_end"))]
    for more, level in cases:
        project(tmp_path, known + more, main=program)
        (entry,) = json.loads(run("check", "--select", "CUD101", "--output-format", "json").stdout)
        assert entry["fix"]["applicability"] == level, more


def test_an_effect_of_ones_own_makes_a_repair_safe_and_another_does_not(run: Run, tmp_path: Path) -> None:
    program = (
        "import multiprocessing\n\nimport engine\nimport torch\n\n\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item()\n\n\nif __name__ == '__main__':\n"
        "    engine.report(torch.zeros(1, device='cuda'))\n"
        "    with multiprocessing.Pool(1) as pool:\n        print(pool.map(work, [1]))\n"
    )
    for effect, level in (("", "unsafe"), ("", "safe"), ('state = "process"\n', "unsafe")):
        table = '[[effect]]\nnames = ["engine.report"]\n' if effect or level == "safe" else ""
        project(tmp_path, '[library]\nname = "engine"\n' + table + effect, main=program)
        (entry,) = json.loads(run("check", "--select", "CUD101", "--output-format", "json").stdout)
        assert entry["fix"]["applicability"] == level
        assert ("engine.report" in (entry["fix"].get("reason") or "")) == (level == "unsafe")


def test_a_model_may_name_every_effect_and_no_other() -> None:
    assert set(EFFECTS) == DOES


def test_models_have_all_that_they_may_have() -> None:
    """What no shipped model says nothing has tried: it may be read by nobody, and a model of one's own that says it
    would be believed to mean something."""
    documents = [tomli.loads(path.read_text()) for path in Path(cudalint.models.__file__).parent.glob("*.toml")]
    entries = [entry for document in documents for entry in document.get("function", ())]
    assert FUNCTION_KEYS.keys() - {key for entry in entries for key in entry} == set()
    assert DOES - {entry.get("does") for entry in entries} == set()
    assert TRAITS - {trait["is"] for document in documents for trait in document.get("trait", ())} == set()


def test_a_name_where_it_is_defined_is_known_as_the_shorter_one() -> None:
    library = load()
    homes = Path(cudalint.models.__file__).with_name("homes.toml")
    named = {home: library.canonical(home) for home in tomli.loads(homes.read_text())["alias"]}
    known = {".".join(name.split(".")[:end]) for name in library.functions for end in range(2, name.count(".") + 2)}
    # Classes that programs derive from have other names too.
    known.update(library.canonical(alias) for alias in library.aliases.keys() - named.keys())
    assert {home for home, name in named.items() if name not in known and library.function(name) is None} == set()


def test_no_function_is_modelled_twice() -> None:
    names: Counter[tuple[str, str | None]] = Counter()
    for path in Path(cudalint.models.__file__).parent.glob("*.toml"):
        for entry in tomli.loads(path.read_text(encoding="utf-8")).get("function", []):
            names.update((name, entry.get("releases")) for name in entry["names"])
    assert [name for name, count in names.items() if count > 1] == []
    # What some releases do is said of others apart.
    always = {name for name, releases in names if releases is None}
    assert [name for name, releases in names if releases is not None and name in always] == []


def test_the_page_of_launchers_names_programs_that_exist() -> None:
    root = Path(__file__).parent.parent
    named: list[Path] = []
    for row in (root / "docs" / "launchers.md").read_text(encoding="utf-8").splitlines():
        folder = ""
        for given, name in re.findall(r"(CUD\d+/)?\b((?:broken|ok)_\w+)", row.rpartition(" | ")[2]):
            folder = given or folder
            named.append(root / "fixtures" / folder / f"{name}.py")
    assert len(named) > 80
    assert [str(path) for path in named if not path.exists()] == []


def test_the_example_of_the_page_is_a_model_that_works(run: Run, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "models.md").read_text(encoding="utf-8")
    models, program = (part.split("```")[0] for part in (page.split("```toml\n")[2], page.split("```python\n")[1]))
    project(tmp_path, models, main=program)
    row = next(i for i, line in enumerate(program.splitlines(), 1) if "score_all(" in line and "def" not in line)
    assert found(run) == [("main", "CUD104", row)]


USING = sorted({*load().gpu_functions, *(name.partition(".")[0] for name in load().effectful_imports)} - {"?"})


def test_files_that_import_what_uses_a_gpu_are_looked_at() -> None:
    words = load().vocabulary
    assert len(USING) > 200
    # Of cv2 only its part for the GPU has a model, and that says so.
    assert not worth_a_look(b"import cv2\n", words)
    assert worth_a_look(b"import cv2\ncv2.cuda.resize(a, b)\n", words)
    for root in (root for root in USING if root != "cv2"):
        for line in (f"import os, {root}\n", f"from {root} import a\n", f"import os as o, {root}.a as b\n"):
            assert worth_a_look(line.encode(), words), line
        assert not worth_a_look(f"# see the manual of {root}_\n".encode(), words), root


STARTING = {
    "environments",
    "executor",
    "fork-launcher",
    "loader",
    "pool",
    "pool.once",
    "process",
    "search",
    "spawn",
    "workers",
}


def test_a_file_that_names_a_launcher_is_looked_at() -> None:
    threads = {"ThreadPoolExecutor", "ThreadPool"}
    launchers = [(name, entry) for name, entry in shipped_functions() if entry["does"] in STARTING]
    assert len(launchers) > 30
    for name, entry in launchers:
        parent, _, last = name.rpartition(".")
        if parent == "?" or last in threads or last == "__init__":
            continue
        text = f"from {parent} import {last}\nmade = {last}({entry.get('workers', 'n_jobs')}=2)\n"
        assert may_launch(Text.of(text.encode(), load().vocabulary)), name


def test_a_launcher_in_toml_alone_is_seen_where_nobody_calls(run: Run, tmp_path: Path) -> None:
    """Its name is in no list: the file is looked at, and the function that holds it is run, for what the model says."""
    model = """
[library]
name = "farm"

[[function]]
names = ["farm.harvest_all"]
does = "fork-launcher"
method = "fork"
function = "function"
workers = "workers"
params = ["function", "items", "workers"]
failure = { body = "crash" }
"""
    program = "import farm, torch\n\ndef work(x):\n    return torch.ones(x, device='cuda')\n\ndef main():\n"
    program += "    torch.zeros(1, device='cuda')\n    farm.harvest_all(work, [1, 2], workers=2)\n"
    project(tmp_path, model, main=program)
    assert [(code, row) for _, code, row in found(run)] == [("CUD104", 8)]
