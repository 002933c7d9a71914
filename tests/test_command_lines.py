"""Programs that scripts, recipes and containers of their repository start, with the words that these give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudalint.config import load
from cudalint.project import command_lines
from cudalint.session import Session

TRAIN = """
import argparse

import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.ones(2).to(self.device)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cpu")
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--gpu", action="store_true")
    args = p.parse_args()
    device = "cuda" if args.gpu else args.device
    model = torch.nn.Linear(2, 2).to(args.device)
    for batch in DataLoader(Data(args.device), num_workers=args.workers):
        print(model(batch))


if __name__ == "__main__":
    main()
"""
GIVEN = "--device cuda --workers 4"
STARTS = {
    "run.sh": f"python train.py {GIVEN}\n",
    "scripts/train.sh": f'cd "$(dirname "$0")/.."\ntime python3 -u train.py \\\n  {GIVEN} "$@" 2>&1 | tee log\n',
    "Makefile": "DEVICE := cuda\ntrain:\n\t@python -W ignore train.py --device=$(DEVICE) --workers 4\n",
    "Dockerfile": 'CMD ["python", "train.py", "--device", "cuda", "--workers", "4"]\n',
    "launch.sh": f"GPUS=${{1:-2}}\ntorchrun --nproc_per_node=$GPUS train.py {GIVEN} --out $OUT\n",
    "ddp.sh": f"N=2\nCUDA_DEVICE_ORDER=1 python -m torch.distributed.run --nproc_per_node $N train.py {GIVEN}\n",
    "hf.sh": f"accelerate launch --num_processes 2 train.py {GIVEN}\n",
    "mpi.sh": f"mpirun -n 2 python -u -m mpi4py train.py {GIVEN}\n",
    "module.sh": f"python -m train {GIVEN}\n",
    "tools/here.sh": f'python $(dirname "$0")/../train.py {GIVEN}\n',
}


def found(folder: Path, name: str, command: str, text: str = TRAIN) -> list[tuple[str, str]]:
    (folder / "setup.py").write_text("", encoding="utf-8")
    (folder / "train.py").write_text(text, encoding="utf-8")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(command, encoding="utf-8")
    return [(f.code, f.severity.value) for f in Session(load([str(folder)])).check([str(folder)]).findings]


@pytest.mark.parametrize("name", STARTS)
def test_a_program_is_run_with_the_words_that_a_file_gives_it(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, name, STARTS[name]) == [("CUD401", "error")]


@pytest.mark.parametrize(
    "command",
    [
        "python train.py\n",
        "python train.py --device cuda\n",
        "python train.py --device cpu --workers 4\n",
        "python train.py --device $DEVICE --workers 4\n",
        "# python train.py --device cuda --workers 4\n",
        "echo python train.py --device cuda --workers 4\n",
        "python other.py train.py --device cuda --workers 4\n",
        "python -c 'import train' train.py --device cuda --workers 4\n",
        "python train.py && run --device cuda --workers 4\n",
        "python 'train.py --device cuda --workers 4\n",
    ],
)
def test_words_that_no_program_is_given(tmp_path: Path, command: str) -> None:
    assert found(tmp_path, "run.sh", command) == []


def test_whatever_an_option_is_called_it_may_decide(tmp_path: Path) -> None:
    text = TRAIN.replace("--device", "--where").replace("--workers", "--many")
    text = text.replace("args.device", "args.where").replace("args.workers", "args.many")
    assert found(tmp_path, "run.sh", "python train.py --where cuda --many 4\n", text) == [("CUD401", "error")]


def test_a_flag_is_given(tmp_path: Path) -> None:
    text = TRAIN.replace("to(args.device)", "to(device)").replace("Data(args.device)", "Data(device)")
    assert conditions(tmp_path, "python train.py --workers 4\n", text) == ["if `--gpu` is given"]
    assert conditions(tmp_path, "python train.py --workers 4 --gpu\n", text) == [None]


def conditions(folder: Path, command: str, text: str) -> list[str | None]:
    found(folder, "run.sh", command, text)
    return [f.condition for f in Session(load([str(folder)])).check([str(folder)]).findings]


def test_a_configuration_of_the_repository_is_read(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("device: cuda\nworkers: 4\n", encoding="utf-8")
    text = TRAIN.replace("import argparse\n", "import argparse\nimport yaml\n")
    text = text.replace('"--device", default="cpu"', '"--config", default="small.yaml"')
    text = text.replace("p.parse_args()\n", "p.parse_args()\n    c = yaml.safe_load(open(args.config))\n")
    text = text.replace("args.device", "c['device']").replace("args.workers", "c['workers']")
    assert found(tmp_path, "run.sh", "python train.py --config big.yaml\n", text) == [("CUD401", "error")]


@pytest.mark.parametrize(
    ("argument", "words", "expected"),
    [
        ('"config"', "conf/big.yaml", [("CUD401", "error")]),
        ('"config"', "conf/big.yaml --seed 1", [("CUD401", "error")]),
        ('"config"', "--seed 1 conf/big.yaml", [("CUD401", "error")]),
        ('"config"', "conf/small.yaml --seed 1", []),
        ('"config"', "$CONFIG --seed 1", []),
        ('"config", nargs="?"', "conf/big.yaml", [("CUD401", "error")]),
    ],
)
def test_a_word_stands_for_itself(tmp_path: Path, argument: str, words: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "big.yaml").write_text("device: cuda\nworkers: 4\n", encoding="utf-8")
    (tmp_path / "conf" / "small.yaml").write_text("device: cpu\nworkers: 0\n", encoding="utf-8")
    text = TRAIN.replace("import argparse\n", "import argparse\nimport yaml\n")
    text = text.replace('"--device", default="cpu"', argument).replace('"--workers"', '"--seed"')
    text = text.replace("p.parse_args()\n", "p.parse_args()\n    c = yaml.safe_load(open(args.config))\n")
    text = text.replace("args.device", "c['device']").replace("args.workers", "c['workers']")
    assert found(tmp_path, "run.sh", f"python train.py {words}\n", text) == expected


DATA = """
import torch
from torch.utils.data import DataLoader, Dataset
{imports}

class Data(Dataset):
    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.ones(2).to(self.device)


def go(device, workers):
    model = torch.nn.Linear(2, 2).to(device)
    for batch in DataLoader(Data(device), num_workers=workers):
        print(model(batch))

{program}
"""
OF_FUNCTIONS = {
    "click": (
        "import click",
        """
@click.command()
@click.option("--device", default="cpu")
@click.option("--workers", default=0)
def main(device, workers):
    go(device, workers)


if __name__ == "__main__":
    main()
""",
        "",
    ),
    "a group of click": (
        "import click",
        """
@click.group()
@click.option("--verbose", is_flag=True)
def cli(verbose):
    print(verbose)


@cli.command()
@click.option("--device", default="cpu")
@click.option("--workers", default=0)
def train(device, workers):
    go(device, workers)


@cli.command()
@click.option("--workers", default=0)
def test(workers):
    pass


if __name__ == "__main__":
    cli()
""",
        "--verbose train --device {device} --workers {workers}",
    ),
    "typer": (
        "import typer",
        """
def main(device: str = "cpu", workers: int = 0):
    go(device, workers)


if __name__ == "__main__":
    typer.run(main)
""",
        "",
    ),
    "commands of typer": (
        "import typer",
        """
app = typer.Typer()


@app.command()
def train(device: str = typer.Option("cpu"), workers: int = typer.Option(0)):
    go(device, workers)


@app.command()
def test(device: str = "cpu"):
    pass


if __name__ == "__main__":
    app()
""",
        "train --device={device} --workers={workers}",
    ),
    "fire": (
        "import fire",
        """
def main(device="cpu", workers=0):
    go(device, workers)


if __name__ == "__main__":
    fire.Fire(main)
""",
        "",
    ),
    "hydra": (
        "import hydra",
        """
@hydra.main(config_path="conf", config_name="config", version_base=None)
def main(config):
    go(config.model.device, config.workers)


if __name__ == "__main__":
    main()
""",
        "model.device={device} +workers={workers}",
    ),
    "a group of hydra": (
        "import hydra",
        """
@hydra.main(config_path="conf", config_name="config", version_base=None)
def main(config):
    go(config.model.device, config.workers)


if __name__ == "__main__":
    main()
""",
        "model={device} workers={workers}",
    ),
}


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_commands_made_of_functions_are_given_the_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "config.yaml").write_text("defaults:\n- model: cpu\nworkers: 0\n", encoding="utf-8")
    (tmp_path / "conf" / "model" / "cpu.yaml").write_text("device: cpu\n", encoding="utf-8")
    (tmp_path / "conf" / "model" / "cuda.yaml").write_text("device: cuda\n", encoding="utf-8")
    imports, program, words = OF_FUNCTIONS[name]
    text = DATA.format(imports=imports, program=program)

    def told(device: str, workers: int) -> list[tuple[str, str, str | None]]:
        given = (words or "--device {device} --workers {workers}").format(device=device, workers=workers)
        found(tmp_path, "run.sh", f"python train.py {given}\n", text)
        findings = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
        return [(f.code, f.severity.value, f.condition) for f in findings]

    assert told("cuda", 2) == [("CUD401", "error", None)]
    assert [condition for _, _, condition in told("cpu", 2) if condition is None] == []
    assert [condition for _, _, condition in told("cuda", 0) if condition is None] == []


ACCELERATED = """
import multiprocessing as mp

import torch


def use(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(use, [1]))
"""


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("python -m cudf.pandas train.py\n", ["CUD101"]),
        ("python -m cuml.accel --disable-uvm train.py --workers 4\n", ["CUD101"]),
        ("python -m profile train.py\n", []),
        ("python train.py\n", []),
    ],
)
def test_a_module_that_runs_the_program_uses_the_gpu_before(tmp_path: Path, command: str, codes: list[str]) -> None:
    assert [code for code, _ in found(tmp_path, "Makefile", f"run:\n\t{command}", ACCELERATED)] == codes


def test_what_a_finding_says_of_the_command(tmp_path: Path) -> None:
    found(tmp_path, "scripts/train.sh", STARTS["scripts/train.sh"])
    (finding,) = Session(load([str(tmp_path)])).check([str(tmp_path)]).findings
    assert finding.trace[0].message == f"is started by scripts/train.sh with {GIVEN}"


def test_the_words_of_a_command(tmp_path: Path) -> None:
    text = "A='x y'\npython a.py --gpu $A --dir \"${B:-b}\" $C ${@:2}; python b.py\n"
    (tmp_path / "run.sh").write_text(text, encoding="utf-8")
    lines = [(target, line.words) for _, target, line in command_lines.found(str(tmp_path))]
    unknown = command_lines.UNKNOWN
    assert lines == [("a.py", ("--gpu", "x y", "--dir", "b", unknown)), ("b.py", ())]
