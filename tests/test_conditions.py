"""A finding that rests on an assumption says so, in the words of the program and in every format."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cudalint.finding import Finding
from cudalint.found import Report
from cudalint.machine.assumptions import Assumption, of_test
from cudalint.project.analysis import Options, analyse
from cudalint.project.judging import either_way, leave_nothing_open
from cudalint.report.render import OutputFormat, Style, render
from cudalint.text.source import SourceFile

HEAD = """\
import argparse
import os
import sys
import multiprocessing as mp
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def start():
    with mp.Pool(2) as pool:
        print(pool.map(work, [1, 2]))


"""
# The body of the main guard, and the condition of the finding at the pool.
CASES: dict[str, tuple[str, str | None]] = {
    "a loop that ends before, entered or not": (
        "torch.cuda.init()\nstep = input()\nwhile step not in sys.argv:\n    step = input()\n"
        "while os.path.exists(step) and len(step) > 3:\n    step = input()\nstart()\n",
        None,
    ),
    "items of a comprehension, by what a method of each gives": (
        "torch.cuda.init()\nold, new = torch.load('a.pt'), torch.load('b.pt')\n"
        "new.update({k: v for k, v in old.items() if k in new and new[k].size() == v.size()})\nstart()\n",
        None,
    ),
    "what the program requires of those who use the GPU": (
        "import json\n\n\ndef main(config):\n    if not config['gpu']:\n        return\n    torch.cuda.init()\n"
        "    if config['part'] is None:\n        raise ValueError\n    start()\n\n\nmain(json.load(sys.stdin))\n",
        "if `config['gpu']` is true",
    ),
    "a trainer of two strategies, one of which forks": (
        "import random\nfrom lightning import Trainer\nif len(input()) > 3:\n    torch.cuda.init()\n"
        "trainer = Trainer(accelerator='gpu', strategy=random.choice(['auto', 'ddp_fork']))\n"
        "trainer.fit(None)\nstart()\n",
        "if the trainer's strategy is not ddp_fork",
    ),
    "a loop in which it happens": (
        "torch.cuda.init()\nwhile len(input()) > 3:\n    start()\n",
        "if `len(input())` is more than 3",
    ),
    "a weight of 1.0, which is no number of things": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--weight', type=float, default=1.0)\n"
        "args = parser.parse_args()\nif args.weight > 0:\n    torch.cuda.init()\n    start()\n",
        None,
    ),
    "whatever one of few words is": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--start', choices=['a', 'b'], default='a')\n"
        "args = parser.parse_args()\nif args.start == 'b':\n    torch.cuda.init()\nelse:\n    torch.zeros(1).cuda()\n"
        "start()\n",
        None,
    ),
    "a flag of click, which is off by default": (
        "import click\n\n\n@click.command()\n@click.option('--gpu/--no-gpu', default=False)\ndef main(gpu):\n"
        "    if gpu:\n        torch.cuda.init()\n    start()\n\n\nmain()\n",
        "if `--gpu` is given",
    ),
    "a flag of click, which is on by default": (
        "import click\n\n\n@click.command()\n@click.option('--cuda/--no-cuda', default=True)\ndef main(cuda):\n"
        "    if cuda:\n        torch.cuda.init()\n    start()\n\n\nmain()\n",
        "if `--no-cuda` is not given",
    ),
    "a flag of a function that fire calls": (
        "import fire\n\n\ndef main(use_gpu=False):\n    if use_gpu:\n        torch.cuda.init()\n    start()\n\n\n"
        "fire.Fire(main)\n",
        "if `--use-gpu` is given",
    ),
    "a flag of a function that typer calls": (
        "import typer\n\n\ndef main(gpu: bool = typer.Option(False)):\n    if gpu:\n        torch.cuda.init()\n"
        "    start()\n\n\ntyper.run(main)\n",
        "if `--gpu` is given",
    ),
    "a flag of a command of typer": (
        "import typer\n\napp = typer.Typer()\n\n\n@app.command()\ndef main(gpu: bool = False):\n    if gpu:\n"
        "        torch.cuda.init()\n    start()\n\n\napp()\n",
        "if `--gpu` is given",
    ),
    "a configuration that is spread into a call": (
        "from omegaconf import OmegaConf\n\n\ndef build(device='cpu', **others):\n    torch.zeros(1, device=device)\n"
        "\n\nbuild(**OmegaConf.create({'device': 'cuda', 'n': 1}))\nstart()\n",
        None,
    ),
    "a flag of a parser of the program's own": (
        "class Own(argparse.ArgumentParser):\n    pass\n\n\nown = Own()\n"
        "own.add_argument('--no-cuda', action='store_true')\nif not own.parse_args().no_cuda:\n    torch.cuda.init()\n"
        "start()\n",
        "if `--no-cuda` is not given",
    ),
    "what a namespace may have that nobody knows": (
        "given = argparse.Namespace(**dict(os.environ))\nif given.cuda:\n    torch.cuda.init()\nstart()\n",
        "if `given.cuda` is true",
    ),
    "files that may not be there": (
        "found = [name for name in os.listdir('.') if name.endswith('.pt')]\nif found:\n    torch.cuda.init()\n"
        "start()\n",
        "if `found` is true",
    ),
    "a table that is filled for some names": (
        "table = {}\nfor name in os.listdir('.'):\n    table[name] = 1\nif not table:\n    sys.exit()\n"
        "torch.cuda.init()\nstart()\n",
        None,
    ),
    "a program that ends with what its main function gives": (
        "def main(check):\n    if check:\n        torch.cuda.init()\n    start()\n    return 0\n\n\n"
        "sys.exit(main('--check' in sys.argv))\n",
        "if `check` is true",
    ),
    "a program that raises what it ends with": (
        "def main(check):\n    if check:\n        torch.cuda.init()\n    start()\n    return 0\n\n\n"
        "raise SystemExit(main('--check' in sys.argv))\n",
        "if `check` is true",
    ),
    "one of two things, of which nobody knows which": (
        "def modes():\n    said = yield 'gpu'\n    yield ''\n    print(said)\n\n\nmode = list(modes())[0]\nif mode:\n"
        "    torch.cuda.init()\nstart()\n",
        "if `mode` is true",
    ),
    "a release by its first numbers": (
        "if tuple(map(int, torch.__version__.split('+')[0].split('.')[:2])) >= (2, 0):\n    torch.cuda.init()\n"
        "start()\n",
        None,
    ),
    "a release by its numbers, one by one": (
        "major, minor = [int(part) for part in torch.__version__.split('.')[:2]]\nif major > 1 or minor > 8:\n"
        "    torch.cuda.init()\nstart()\n",
        None,
    ),
    "a release as torch compares it": ("if torch.__version__ >= '2.0':\n    torch.cuda.init()\nstart()\n", None),
    "a release that nobody has yet": (
        "if torch.__version__ >= '99.0':\n    torch.cuda.init()\nstart()\n",
        "if `torch.__version__` is at least 99.0",
    ),
    "a variable that is read where something waits for it not to be set": (
        "try:\n    os.environ['NEEDED']\nexcept KeyError:\n    torch.cuda.init()\nstart()\n",
        "if `NEEDED` is not set",
    ),
    "the same of a variable for which nothing waits": (
        "try:\n    int(os.environ['NEEDED'])\nexcept ValueError:\n    pass\ntorch.cuda.init()\nstart()\n",
        None,
    ),
    "a flag": (
        "args = parser.parse_args()\nif args.use_gpu:\n    torch.cuda.init()\nstart()\n",
        "if `--use-gpu` is given",
    ),
    "a flag that switches off": (
        "args = parser.parse_args()\nif not args.cuda:\n    sys.argv.clear()\nelse:\n    torch.cuda.init()\nstart()\n",
        "if `--no-cuda` is not given",
    ),
    "a choice, by an early return of its caller": (
        "args = parser.parse_args()\n\n\ndef main(mode):\n    if mode != 'gpu':\n        return\n"
        "    torch.cuda.init()\n    start()\n\n\nmain(args.mode)\n",
        "if `--mode` is gpu",
    ),
    "two options, with which its caller returns early": (
        "args = parser.parse_args()\n\n\ndef main(gpu, mode):\n    if gpu and mode == 'cpu':\n        return\n"
        "    torch.cuda.init()\n    start()\n\n\nmain(args.use_gpu, args.mode)\n",
        "if `--use-gpu` is not given or `--mode` is not cpu",
    ),
    "one of two things that are no options": (
        "if len(sys.argv) > 5:\n    torch.cuda.init()\nif 'x' in sys.argv:\n    torch.cuda.init()\nstart()\n",
        "if `len(sys.argv)` is more than 5 or `sys.argv` contains x",
    ),
    "one of three things": (
        "if len(sys.argv) > 5:\n    torch.cuda.init()\nif 'x' in sys.argv:\n    torch.cuda.init()\n"
        "if 'y' in sys.argv:\n    torch.cuda.init()\nstart()\n",
        "if `len(sys.argv)` is more than 5 or `sys.argv` contains x or `sys.argv` contains y",
    ),
    "both of two things, whose opposite comes on two paths": (
        "few, named = len(sys.argv) < 5, 'x' in sys.argv\nif not (few and named):\n    torch.cuda.init()\n"
        "if not few or not named:\n    start()\n",
        "if `few` is false or `named` is false",
    ),
    "two options that the program refuses": (
        "args = parser.parse_args()\n\n\ndef main(gpu, mode):\n    if gpu and mode == 'cpu':\n"
        "        raise ValueError(mode)\n    torch.cuda.init()\n    start()\n\n\nmain(args.use_gpu, args.mode)\n",
        None,
    ),
    "a number that the program refuses out of bounds": (
        "parser.add_argument('--split', type=float, default=0.0)\nargs = parser.parse_args()\n\n\ndef check(split):\n"
        "    if split < 0.0 or split >= 1.0:\n        raise ValueError(split)\n\n\ncheck(args.split)\n"
        "torch.cuda.init()\nstart()\n",
        None,
    ),
    "a number that the program gets over out of bounds": (
        "parser.add_argument('--split', type=float, default=0.0)\nargs = parser.parse_args()\n\n\ndef check(split):\n"
        "    if split < 0.0:\n        raise ValueError(split)\n\n\ntry:\n    check(args.split)\n    torch.cuda.init()\n"
        "except ValueError:\n    pass\nstart()\n",
        "if `--split` is at least 0.0",
    ),
    "a number of workers": (
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.workers > 1:\n    start()\n",
        "if `--workers` is more than 1",
    ),
    "the number of GPUs, of which there is one in any case": (
        "if torch.cuda.device_count() > 0 and torch.cuda.device_count() >= 2:\n    torch.cuda.init()\nstart()\n",
        "if `torch.cuda.device_count()` is at least 2",
    ),
    "variables of the environment": (
        "if os.environ.get('GPU') == '1':\n    torch.cuda.init()\nif 'CI' not in os.environ:\n    start()\n",
        "if `GPU` is 1 and `CI` is not set",
    ),
    "what only frozen programs have": (
        "if getattr(sys, 'frozen', False):\n    torch.cuda.init()\nstart()\n",
        "if `getattr(sys, 'frozen', False)` is true",
    ),
    "a variable that is set": ("if os.getenv('GPU'):\n    torch.cuda.init()\nstart()\n", "if `GPU` is set"),
    "more rounds of a loop than the default of an option has": (
        "parser.add_argument('--epochs', type=int, default=1)\nargs = parser.parse_args()\n"
        "for epoch in range(args.epochs):\n    if epoch:\n        start()\n    torch.cuda.init()\n",
        "if `--epochs` is more than 1",
    ),
    "what a table has under a name from the environment that is another by default": (
        "KINDS = {'host': int, 'gpu': torch.cuda.init}\nKINDS[os.environ.get('KIND', 'host')]()\nstart()\n",
        "if `KIND` is gpu",
    ),
    "as many rounds of a loop as the default of an option has": (
        "parser.add_argument('--epochs', type=int, default=1)\nargs = parser.parse_args()\n"
        "for epoch in range(args.epochs):\n    torch.cuda.init()\nstart()\n",
        None,
    ),
    "an item of a file": (
        "import json\n\nconfig = json.load(open('c.json'))\nif config['gpu']:\n    torch.cuda.init()\nstart()\n",
        "if `config['gpu']` is true",
    ),
    "an item of a table, by a name that a file gives": (
        "import json\n\n\ndef init():\n    torch.cuda.init()\n\n\nKINDS = {'host': int, 'gpu': init, 'tpu': float}\n"
        "kind = KINDS[json.load(open('c.json'))['kind']]\nif callable(kind):\n    kind()\nstart()\n",
        "if `KINDS[json.load(open('c.json'))['kind']]` picks gpu",
    ),
    "one of several names of a file, each of which picks an item of a table": (
        "import json\n\n\ndef init():\n    torch.cuda.init()\n\n\nKINDS = {'host': int, 'gpu': init, 'tpu': float}\n"
        "for name in json.load(open('c.json')):\n    kind = KINDS.get(name)\n    if kind is None:\n"
        "        raise KeyError(name)\n    kind()\nstart()\n",
        "if `KINDS.get(name)` picks gpu",
    ),
    "a method of an object, by a name that a file ends": (
        "import json\n\n\nclass Worker:\n    def do_host(self):\n        return 1\n    def do_init(self):\n"
        "        torch.cuda.init()\n\n\ngetattr(Worker(), f'do_{json.load(open(0))}')()\nstart()\n",
        "if `getattr(Worker(), f'do_{json.load(open(0))}')` picks do_init",
    ),
    "an item that is a task of a pool which was made before": (
        "import json\n\nKINDS = {'host': int, 'gpu': work, 'tpu': float}\ntorch.cuda.init()\npool = mp.Pool(2)\n"
        "for name in json.load(open('c.json')):\n    pool.map(KINDS[name], [1])\n",
        "if `KINDS[name]` picks gpu",
    ),
    "an attribute": (
        "import settings\n\nif settings.current.gpu:\n    torch.cuda.init()\nstart()\n",
        "if `settings.current.gpu` is true",
    ),
    "a test that is long to write": (
        "import json\n\nconfig = json.load(open('c.json'))\n"
        "if config['devices']['first_of_all_the_machines']['kind_of_accelerator']:\n    torch.cuda.init()\nstart()\n",
        "if what is asked in line 21 is true",
    ),
    "a flag whose default is set": (
        "parser.set_defaults(use_gpu=False)\nargs = parser.parse_args()\n"
        "if args.use_gpu:\n    torch.cuda.init()\nstart()\n",
        "if `--use-gpu` is given",
    ),
    "a case": (
        "match sys.argv[1]:\n    case 'gpu':\n        torch.cuda.init()\n    case _:\n        pass\nstart()\n",
        "if `sys.argv[1]` is gpu",
    ),
    "what the worker asks": (
        "import settings\n\n\ndef careful(n):\n    return work(n) if settings.gpu else 0\n\n\ntorch.cuda.init()\n"
        "with mp.Pool(2) as pool:\n    pool.map(careful, [1])\n",
        "if `settings.gpu` is true",
    ),
    "more than a reader can keep": (
        "args = parser.parse_args()\nif args.use_gpu and args.workers > 1 and os.environ.get('A') == 'b':\n"
        "    torch.cuda.init()\n    start()\n",
        "if `--use-gpu` is given and `--workers` is more than 1",
    ),
    "how many rounds there have to be before what leads to them": (
        "parser.add_argument('--epochs', type=int, default=1)\nargs = parser.parse_args()\n"
        "if args.use_gpu:\n    if args.mode == 'gpu':\n        for epoch in range(args.epochs):\n"
        "            if epoch:\n                start()\n            torch.cuda.init()\n",
        "if `--epochs` is more than 1 and `--use-gpu` is given",
    ),
    "the default of a variable": (
        "torch.ones(1, device=os.environ.get('DEVICE', 'cuda'))\nstart()\n",
        "if `DEVICE` is cuda",
    ),
    "the default of a setting": (
        "import json\n\nconfig = json.load(open('c.json'))\ntorch.ones(1, device=config.get('gpu', 'cuda'))\nstart()\n",
        "if `torch.ones(1, device=config.get('gpu', 'cuda'))` is on a GPU",
    ),
    "a number that a variable has": (
        "if int(os.environ.get('GPUS', '0')):\n    torch.cuda.init()\nstart()\n",
        "if `GPUS` is not 0",
    ),
    "an option that is a number": (
        "args = parser.parse_args()\nif args.workers:\n    torch.cuda.init()\nstart()\n",
        "if `--workers` is not 0",
    ),
    "an option that has to be there": (
        "args = parser.parse_args()\nif args.mode is not None:\n    torch.cuda.init()\nstart()\n",
        "if `--mode` is given",
    ),
    "one of several values": (
        "args = parser.parse_args()\nif args.mode in ('gpu', 'both'):\n    torch.cuda.init()\nstart()\n",
        "if `--mode` is one of both, gpu",
    ),
    "a variable that is there, empty or not": (
        "if os.environ.get('GPU') is not None:\n    torch.cuda.init()\nstart()\n",
        "if `GPU` is set",
    ),
    "a variable that is not there": (
        "if os.environ.get('CPU') is None:\n    torch.cuda.init()\nstart()\n",
        "if `CPU` is not set",
    ),
    "a pattern that asks two things": (
        "import settings\n\nmatch settings.load():\n    case {'gpu': True, 'mode': 'train'}:\n"
        "        torch.cuda.init()\nstart()\n",
        "if `{'gpu': True, 'mode': 'train'}` fits",
    ),
    "a pattern that is refused": (
        "import settings\n\nmatch settings.load():\n    case settings.Cpu():\n        pass\n    case _:\n"
        "        torch.cuda.init()\nstart()\n",
        "if `settings.Cpu()` does not fit",
    ),
    "a mapping that is refused for what it holds": (
        "import settings\n\nmatch settings.load():\n    case {'gpu': 0}:\n        pass\n"
        "    case {'gpu': 1}:\n        torch.cuda.init()\nstart()\n",
        "if `{'gpu': 0}` does not fit and `{'gpu': 1}` fits",
    ),
    "a mapping of which only the kind is known": (
        "import settings\n\nmatch settings.load():\n    case {'gpu': 0}:\n        sys.exit()\n"
        "    case dict():\n        torch.cuda.init()\nstart()\n",
        "if `{'gpu': 0}` may fit",
    ),
    "a pattern after one that is refused": (
        "import settings\n\nmatch settings.load():\n    case settings.Cpu():\n        pass\n"
        "    case settings.Gpu(index=0):\n"
        "        torch.cuda.init()\nstart()\n",
        "if `settings.Cpu()` does not fit and `settings.Gpu(index=0)` fits",
    ),
    "so many at least": (
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.workers >= 2:\n    start()\n",
        "if `--workers` is at least 2",
    ),
    "fewer": (
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.workers < 9:\n    start()\n",
        "if `--workers` is less than 9",
    ),
    "so many at most": (
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.workers <= 8:\n    start()\n",
        "if `--workers` is at most 8",
    ),
    "more values than a reader wants to see": (
        "if os.environ.get('HOST') not in {'a', 'b', 'c', 'd', 'e'}:\n    torch.cuda.init()\nstart()\n",
        "if `HOST` does not pass the test",
    ),
    "nothing that decides": (
        "args = parser.parse_args()\nif args.use_gpu:\n    print('hello')\ntorch.cuda.init()\nstart()\n",
        None,
    ),
    "both answers": (
        "args = parser.parse_args()\nif args.use_gpu:\n    torch.cuda.init()\nelse:\n"
        "    print(torch.cuda.is_available())\nstart()\n",
        None,
    ),
    "what the program refuses to run without": (
        "if len(sys.argv) < 2:\n    sys.exit('usage')\nif not torch.cuda.is_available():\n    raise RuntimeError\n"
        "assert os.environ.get('DATA')\ntorch.cuda.init()\nstart()\n",
        None,
    ),
    "what a function on the way asserts, of which not all ways come there": (
        "def ready():\n    assert os.environ.get('DATA')\n    torch.cuda.init()\n\n\n"
        "if os.environ.get('GPU'):\n    ready()\nstart()\n",
        "if `GPU` is set",
    ),
    "a framework that the program is about": (
        "import importlib.util\n\nif importlib.util.find_spec('torch') is not None:\n    torch.cuda.init()\nstart()\n",
        None,
    ),
    "that there is a GPU, which goes without saying": (
        "if torch.cuda.device_count() >= 1:\n    torch.cuda.init()\nstart()\n",
        None,
    ),
    "that there are several GPUs, which does not": (
        "if torch.cuda.device_count() > 1:\n    torch.cuda.init()\nstart()\n",
        "if `torch.cuda.device_count()` is more than 1",
    ),
    "one of two options": (
        "args = parser.parse_args()\nmode = args.mode or args.workers\n"
        "if mode == 'gpu':\n    torch.cuda.init()\nstart()\n",
        "if `mode` is gpu",
    ),
    "one of two values": (
        "args = parser.parse_args()\nif args.mode == 'gpu':\n    torch.cuda.init()\n"
        "elif args.mode == 'both':\n    torch.cuda.init()\nstart()\n",
        "if `--mode` is one of both, gpu",
    ),
    "this or that, one of which is enough": (
        "args = parser.parse_args()\nif args.mode == 'gpu':\n    torch.cuda.init()\n"
        "elif args.workers > 4:\n    torch.tensor(1).cuda()\nstart()\n",
        "if `--mode` is gpu, or if `--workers` is more than 4",
    ),
    "this and that, of which two are more than needed": (
        "args = parser.parse_args()\nif args.mode == 'gpu':\n    torch.cuda.init()\n    if args.workers > 4:\n"
        "        torch.cuda.set_device(0)\nstart()\n",
        "if `--mode` is gpu",
    ),
    "whatever a word is": (
        "word = input()\nmatch word:\n    case 'a':\n        torch.cuda.init()\n    case 'b':\n"
        "        torch.cuda.set_device(1)\n    case _:\n        torch.zeros(1, device='cuda')\nstart()\n",
        None,
    ),
    "two words of three": (
        "word = input()\nmatch word:\n    case 'a':\n        torch.cuda.init()\n    case 'b':\n"
        "        torch.cuda.set_device(1)\n    case _:\n        pass\nstart()\n",
        "if `word` is a, or if `word` is b",
    ),
    "three words of four": (
        "word = input()\nmatch word:\n    case 'a':\n        torch.cuda.init()\n    case 'b':\n"
        "        torch.cuda.set_device(1)\n    case 'c':\n        torch.cuda.set_device(2)\n"
        "    case _:\n        pass\nstart()\n",
        "if `word` is a, or if `word` is b, among other cases",
    ),
    "another package": (
        "import importlib.util\n\nif importlib.util.find_spec('apex') is not None:\n    torch.cuda.init()\nstart()\n",
        "if apex is installed",
    ),
}
PARSER = """\
parser = argparse.ArgumentParser()
parser.add_argument("-g", "--use-gpu", action="store_true")
parser.add_argument("--no-cuda", dest="cuda", action="store_false")
parser.add_argument("--mode", choices=["cpu", "gpu"])
parser.add_argument("--workers", type=int)
"""


def _findings(body: str) -> tuple[Finding, ...]:
    given = (PARSER if "parser" in body else "") + body
    text = (
        HEAD + 'if __name__ == "__main__":\n' + "".join(f"    {row}\n" if row else "\n" for row in given.splitlines())
    )
    return analyse([SourceFile("train.py", text, text.encode())], Options()).findings


@pytest.mark.parametrize("name", CASES)
def test_the_condition_is_in_the_words_of_the_program(name: str) -> None:
    body, condition = CASES[name]
    assert [f.condition for f in _findings(body) if f.code == "CUD101"] == [condition]


# The same of findings that only another word of an option leads to than its default.
CHOSEN = {
    "one of few words": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('-s', '--start', choices=['a', 'b'], default='a')\n"
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.start == 'b':\n    start()\n",
        "if `--start b` is given",
    ),
    "one of two of few words": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--start', choices=['a', 'b', 'c'], default='a')\n"
        "args = parser.parse_args()\ntorch.cuda.init()\nif args.start != 'a':\n    start()\n",
        "if `--start b` is given, or if `--start c` is given",
    ),
    "one of few words, and a flag": (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--start', choices=['a', 'b'], default='a')\n"
        "parser.add_argument('--gpu', action='store_true')\nargs = parser.parse_args()\nif args.gpu:\n"
        "    torch.cuda.init()\nif args.start == 'b':\n    start()\n",
        "if `--start b` is given and `--gpu` is given",
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_condition_names_the_word_that_a_user_gives(name: str) -> None:
    body, condition = CHOSEN[name]
    assert [(f.code, f.condition) for f in _findings(body)] == [("CUD102", condition)]


def test_one_gpu_is_there_in_any_case() -> None:
    found = _findings("if torch.cuda.device_count() > 0:\n    torch.cuda.init()\nstart()\n")
    assert [(finding.code, finding.condition) for finding in found] == [("CUD101", None)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("is given", "is not given"),
        ("is true", "is false"),
        ("contains daemon", "does not contain daemon"),
        ("is less than 2", "is at least 2"),
        ("is gpu", "is not gpu"),
        ("was built with CUDA", "was not built with CUDA"),
    ],
)
def test_of_two_ways_one_of_which_is_taken_in_any_case_none_is_told(one: str, other: str) -> None:
    """As of chai_lab, whose worker starts whether or not its process is a daemon."""
    ways = [(Assumption("`x`", one),), (Assumption("`x`", other),)]

    assert leave_nothing_open(ways)
    assert not leave_nothing_open([ways[0], (Assumption("`y`", other),)])
    assert not leave_nothing_open([ways[0], (*ways[1], Assumption("`y`", one))])


def test_a_way_that_is_taken_wherever_another_is_not_leaves_no_condition() -> None:
    """As of pytoda, whose loop over the files of a vocabulary looks for each, or for none."""
    missing, there = Assumption("`found`", "is false"), Assumption("`found`", "is true")
    no_folder, more = Assumption("`folder`", "is false"), Assumption("`--more`", "is given")
    choice = Assumption("`found`", "is true", no_folder)
    ways = ((missing,), (choice,))

    assert leave_nothing_open(ways)
    assert either_way(ways, ways) == ((),)
    assert either_way(((choice, more),), ((missing,),)) == ((more,),)
    assert not leave_nothing_open([(there,), (choice,)])
    assert either_way(((there,), (choice,)), ((there,), (choice,))) == ((there,), (choice,))


def test_what_is_so_on_one_of_several_ways_and_not_so_on_the_others_is_told_of_none() -> None:
    """As of the scripts of ESPnet, which ask for a level of verbosity in two steps before they do anything."""
    is_there = Assumption("`path`", "is given")
    high, some, none = (
        Assumption("`x`", "is more than 1"),
        Assumption("`x`", "is more than 0"),
        Assumption("`x`", "is at most 0"),
    )
    ways = ((high, is_there), (none, is_there), (Assumption("`x`", "is at most 1"), some, is_there))

    assert either_way(ways, ways) == ((is_there,),)
    assert either_way(ways[:2], ways[:2]) == ways[:2]


BUILT = """\
import multiprocessing as mp

import open3d
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    if {test}:
        torch.cuda.init()
    with mp.Pool(2) as pool:
        print(pool.map(work, [1, 2]), open3d)
"""


@pytest.mark.parametrize(("test", "condition"), [("True", None), ("input()", "if `input()` is true")])
def test_how_a_package_was_built_is_no_condition_where_either_way_fails(test: str, condition: str | None) -> None:
    """What this process did itself is certain; where it did nothing, the import may have asked the driver."""
    text = BUILT.format(test=test)
    found = analyse([SourceFile("/project/main.py", text, text.encode())], Options()).findings

    assert [(finding.code, finding.condition) for finding in found] == [("CUD101", condition)]


def test_options_of_click_are_named_as_they_are_given() -> None:
    text = HEAD.replace("import sys", "import sys\nimport click") + (
        '@click.command()\n@click.option("--gpu/--no-gpu")\n@click.option("--mode")\ndef main(gpu, mode):\n'
        '    if gpu and mode == "fast":\n        torch.cuda.init()\n    start()\n\n\n'
        'if __name__ == "__main__":\n    main()\n'
    )
    found = analyse([SourceFile("train.py", text, text.encode())], Options()).findings
    assert [f.condition for f in found] == ["if `--gpu` is given and `--mode` is fast"]


def test_a_module_that_a_file_names_is_picked_from_its_package() -> None:
    files = {
        "main.py": HEAD
        + "import importlib\nimport json\nif __name__ == '__main__':\n"
        + "    name = json.load(open('plugins.json'))['gpu']\n"
        + "    importlib.import_module(f'plugins.{name}')\n    start()\n",
        "plugins/__init__.py": "",
        "plugins/gpu.py": "import torch\nNAME = torch.cuda.get_device_name()\n",
        "plugins/host.py": "import platform\nNAME = platform.node()\n",
    }
    found = analyse([SourceFile(path, text, text.encode()) for path, text in files.items()], Options()).findings
    conditions = [f.condition for f in found if f.code == "CUD101"]
    assert conditions == ["if `importlib.import_module(f'plugins.{name}')` picks plugins.gpu"]


def test_the_size_of_a_group_is_what_it_was_joined_with() -> None:
    text = (
        "import argparse\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
        "def run(rank, n):\n    dist.init_process_group('nccl', 'tcp://localhost:1', rank=rank, world_size=n)\n"
        "    if dist.get_world_size() == 1:\n        return\n    dist.all_gather_object([None] * n, 1)\n"
        "if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--hosts', type=int)\n    parser.add_argument('--gpus', type=int)\n"
        "    args = parser.parse_args()\n    size = args.hosts * args.gpus\n"
        "    if size > 1:\n        mp.spawn(run, args=(size,), nprocs=args.gpus)\n"
    )
    found = analyse([SourceFile("train.py", text, text.encode())], Options()).findings
    assert [(f.code, f.condition) for f in found] == [("CUD503", "if `size` is more than 1")]


@pytest.mark.parametrize("test", ["rank == 0", "rank != 0", "not rank", "rank % 2 == 0"])
def test_some_process_has_each_rank(test: str) -> None:
    text = (
        "import multiprocessing as mp\nimport torch\nfrom torch.multiprocessing import spawn\n"
        "def use():\n    torch.zeros(1, device='cuda')\n"
        f"def run(rank):\n    if {test}:\n        torch.cuda.init()\n"
        "        mp.get_context('fork').Process(target=use).start()\n"
        "if __name__ == '__main__':\n    spawn(run, nprocs=2)\n"
    )
    found = analyse([SourceFile("train.py", text, text.encode())], Options()).findings
    assert [(f.code, f.condition) for f in found] == [("CUD101", None)]


def test_what_a_package_that_is_not_seen_may_define_is_a_condition() -> None:
    text = (
        "import multiprocessing as mp\nimport torch\nfrom labkit.common import *\n"
        "def work(n):\n    return torch.ones(n) * factor\n"
        "if __name__ == '__main__':\n    factor = 3\n"
        "    with mp.get_context('spawn').Pool(2) as pool:\n        print(pool.map(work, [1, 2]))\n"
    )
    found = analyse([SourceFile("train.py", text, text.encode())], Options()).findings
    told = [(f.code, f.severity.value, f.condition) for f in found]
    assert told == [("CUD108", "warning", "if `labkit.common` does not define `factor`")]


def test_the_condition_of_a_version_comes_first() -> None:
    text = HEAD + 'if __name__ == "__main__":\n    if os.environ.get("GPU"):\n        torch.cuda.init()\n    start()\n'
    options = Options(target_versions=((3, 12), (3, 14)))
    found = analyse([SourceFile("train.py", text, text.encode())], options).findings
    assert [f.condition for f in found if f.code == "CUD101"] == ["before Python 3.14, if `GPU` is set"]


@pytest.mark.parametrize(
    ("asked", "told"), [("", [("CUD101", "before Python 3.14"), ("CUD201", "from Python 3.14")]), ("'fork'", None)]
)
def test_a_default_context_starts_as_each_python_does(asked: str, told: list[tuple[str, str]] | None) -> None:
    text = (
        f"import multiprocessing\nimport torch\nCONTEXT = multiprocessing.get_context({asked})\n"
        "def work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
        "if __name__ == '__main__':\n    torch.cuda.init()\n"
        "    with CONTEXT.Pool(2) as pool:\n        print(pool.map(work, [1, 2]))\n"
    )
    options = Options(target_versions=((3, 12), (3, 14)))
    found = analyse([SourceFile("train.py", text, text.encode())], options).findings
    assert [(f.code, f.condition) for f in found] == (told or [("CUD101", None)])


@pytest.mark.parametrize("output", sorted(set(OutputFormat), key=lambda output: output.value))
def test_every_format_shows_it(output: OutputFormat) -> None:
    findings = _findings(CASES["a flag"][0])
    report = Report(findings=findings, texts={"train.py": HEAD})
    assert "--use-gpu` is given" in render(report, output, Style(colour=False, directory="/"))


# What decides, and the condition that says so wherever it is asked.
ASKED = {
    "args.use_gpu": "if `--use-gpu` is given",
    "args.mode == 'gpu'": "if `--mode` is gpu",
    "os.environ.get('GPU') == '1'": "if `GPU` is 1",
    "len(sys.argv) > 2": "if `len(sys.argv)` is more than 2",
}
# One and the same program, written in other ways.
WAYS = {
    "a statement": "if {test}:\n    torch.cuda.init()\nstart()\n",
    "the branches swapped": "if not ({test}):\n    pass\nelse:\n    torch.cuda.init()\nstart()\n",
    "an expression": "torch.cuda.init() if {test} else None\nstart()\n",
    "an operator": "{test} and torch.cuda.init()\nstart()\n",
    "the choice of a device": "device = 'cuda' if {test} else 'cpu'\ntorch.ones(1, device=device)\nstart()\n",
    "an early return": "def prepare():\n    if not ({test}):\n        return\n    torch.cuda.init()\n\n\n"
    "prepare()\nstart()\n",
    "a return of the whole": "def run():\n    if {test}:\n        torch.cuda.init()\n        return start()\n"
    "    return start()\n\n\nrun()\n",
    "an exception": "try:\n    if not ({test}):\n        raise ValueError\nexcept ValueError:\n    pass\nelse:\n"
    "    torch.cuda.init()\nstart()\n",
    "a loop that is left": "for _ in range(1):\n    if not ({test}):\n        break\n    torch.cuda.init()\nstart()\n",
}  # fmt: skip
# Where the answer is kept before it is asked for.
KEPT = {
    "a variable": "answer = {test}\nif answer:\n    torch.cuda.init()\nstart()\n",
    "a helper": "def wanted():\n    return {test}\n\n\nif wanted():\n    torch.cuda.init()\nstart()\n",
    "a helper with a return for each": "def wanted():\n    if {test}:\n        return True\n    return False\n\n\n"
    "if wanted():\n    torch.cuda.init()\nstart()\n",
    "a parameter": "def prepare(on):\n    if on:\n        torch.cuda.init()\n\n\nprepare({test})\nstart()\n",
    "a field": "class Options:\n    def __init__(self, on):\n        self.on = on\n\n\noptions = Options({test})\n"
    "if options.on:\n    torch.cuda.init()\nstart()\n",
    "an item": "options = {{'on': {test}}}\nif options['on']:\n    torch.cuda.init()\nstart()\n",
    "a closure": "def maker(on):\n    def prepare():\n        if on:\n            torch.cuda.init()\n"
    "    return prepare\n\n\nmaker({test})()\nstart()\n",
}


@pytest.mark.parametrize("test", ASKED)
def test_a_condition_is_the_same_however_it_is_written(test: str) -> None:
    found = {way: _findings(f"args = parser.parse_args()\n{text.format(test=test)}") for way, text in WAYS.items()}
    shown = {way: [(f.code, f.severity.value, f.condition) for f in each] for way, each in found.items()}
    assert shown == {way: [("CUD101", "error", ASKED[test])] for way in WAYS}


@pytest.mark.parametrize("test", [test for test in ASKED if "len" not in test])
def test_a_condition_is_the_same_wherever_its_answer_was_kept(test: str) -> None:
    found = {way: _findings(f"args = parser.parse_args()\n{text.format(test=test)}") for way, text in KEPT.items()}
    shown = {way: [(f.code, f.severity.value, f.condition) for f in each] for way, each in found.items()}
    assert shown == {way: [("CUD101", "error", ASKED[test])] for way in KEPT}


@pytest.mark.parametrize("way", KEPT)
def test_a_condition_without_a_name_is_what_is_asked_in_the_end(way: str) -> None:
    (finding,) = _findings(f"args = parser.parse_args()\n{KEPT[way].format(test='len(sys.argv) > 2')}")
    assert finding.severity.value == "error"
    assert finding.condition is not None


@pytest.mark.parametrize(
    ("text", "holds", "said"),
    [
        ("entry not in KNOWN", "is false", "`entry in KNOWN` is true"),
        ("mode != 'gpu'", "is true", "`mode == 'gpu'` is false"),
        ("x is not None", "is false", "`x is None` is true"),
        ("not (a or b)", "is false", "`a or b` is true"),
        ("a not in b or c", "is false", "`a not in b or c` is false"),
        ("(a := b()) != c", "is true", "`(a := b()) == c` is false"),
        ("count", "is at least 2", "`count` is at least 2"),
        ("é not in ñ", "is true", "`é in ñ` is false"),
    ],
)
def test_a_test_that_denies_something_is_said_without(text: str, holds: str, said: str) -> None:
    assert of_test(text, holds) == said


@pytest.mark.parametrize(("code", "severity"), [("1", "error"), ("0", "warning")])
def test_a_child_that_ends_as_a_failure_did_not_get_over_what_it_caught(code: str, severity: str) -> None:
    text = (
        "import os\nimport torch\n\n\ndef work():\n    torch.ones(1, device='cuda')\n\n\nif __name__ == '__main__':\n"
        "    torch.cuda.init()\n    if os.fork() == 0:\n        code = CODE\n        try:\n            work()\n"
        "            code = 0\n        except RuntimeError as error:\n            print(error)\n        finally:\n"
        "            os._exit(code)\n"
    ).replace("CODE", code)
    (finding,) = analyse([SourceFile("main.py", text, text.encode())], Options()).findings
    assert (finding.code, finding.severity.value) == ("CUD101", severity)


@pytest.mark.parametrize(
    "rows", ["[line for line in text() if 'GPU' in line]", "{line for line in text() if line.endswith('.pt')}"]
)
def test_what_some_items_of_something_pass_is_no_condition(rows: str) -> None:
    (finding,) = _findings(f"from lib import text\n\nrows = {rows}\ntorch.cuda.init()\nstart()\nprint(rows)\n")
    assert (finding.condition, finding.severity.value) == (None, "error")


REFUSED = """\
import torch
import torch.distributed as dist
from models import load, options
def train():
    dist.init_process_group("nccl")
    args = options()
    model = load(args.path)
    if not args.plain:
        for name, param in model.named_parameters():
            if "clip" in name:
                if args.bits == 1:
                    scale = 1
                elif args.bits == 0 or args.bits == 2:
                    scale = 2
                else:
                    raise NotImplementedError
                param.data.copy_(scale)
    model.cuda()
    if args.train:
        print(1)
    dist.barrier()
if __name__ == "__main__":
    train()
"""


def test_what_an_import_refuses_to_run_without_is_no_condition() -> None:
    checks = (
        "import diffusers\nimport torch\nfrom packaging import version\n\n\ndef check():\n"
        "    if version.parse(diffusers.__version__) < version.parse('0.30.0'):\n        raise RuntimeError\n"
        "    return torch.cuda.is_available()\n\n\nCHECKED = check()\n"
    )
    main = HEAD + "from checks import CHECKED\n\nif __name__ == '__main__':\n    print(CHECKED)\n    start()\n"
    given = [SourceFile(name, text, text.encode()) for name, text in (("checks.py", checks), ("train.py", main))]
    assert [(f.code, f.condition) for f in analyse(given, Options()).findings] == [("CUD101", None)]


def test_the_ways_around_what_is_refused_are_said() -> None:
    """All that lead to the barrier, with names that hold the word and without: as of paretoq."""
    (finding,) = analyse([SourceFile("main.py", REFUSED, REFUSED.encode())], Options()).findings
    assert finding.code == "CUD502"
    ways = "`args.bits` is 1 or `name` does not contain clip or `args.plain` is true"
    assert finding.condition == f"if {ways}, or if `args.bits` is one of 0, 2"


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        ("ab", "if `args.a` is true or `args.b` is true"),
        ("abcd", "if `args.a` is true or `args.b` is true or `args.c` is true or `args.d` is true"),
        ("abcde", "if `args.a` is true or `args.b` is true or `args.c` is true or one of 2 other things is so"),
    ],
)
def test_of_many_things_of_which_one_is_so_the_first_are_said(names: str, condition: str) -> None:
    asked = " or ".join(f"args.{name}" for name in names)
    (finding,) = _findings(f"from lib import args\n\nif {asked}:\n    torch.cuda.init()\nstart()\n")
    assert finding.condition == condition


def test_one_of_two_things_is_told_from_what_is_so_beside() -> None:
    (finding,) = _findings(
        "from lib import args\n\nif args.c:\n    if args.a or args.b:\n        torch.cuda.init()\n    start()\n"
    )
    assert finding.condition == "if `args.c` is true and either `args.a` is true or `args.b` is true"


def test_what_a_program_decides_for_all_items_is_a_condition() -> None:
    rows = "[line for line in text() if args.gpu]"
    (finding,) = _findings(
        "import argparse\nfrom lib import text\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--gpu', action='store_true')\nargs = parser.parse_args()\n"
        f"rows = {rows}\nif args.gpu:\n    torch.cuda.init()\nstart()\nprint(rows)\n"
    )
    assert finding.condition == "if `--gpu` is given"


@pytest.mark.parametrize(
    ("count", "severity"),
    [
        ("os.cpu_count()", "error"),
        ("max(1, os.cpu_count() - 2)", "error"),
        ("min(8, os.cpu_count())", "error"),
        ("os.cpu_count() - 2", "warning"),
        ("int(sys.argv[1])", "warning"),
    ],
)
def test_a_map_has_workers_for_certain_where_it_is_told_of_one_at_the_least(count: str, severity: str) -> None:
    text = (
        "import os\nimport sys\nimport datasets\nimport torch\n\ndef work(row):\n    torch.ones(1, device='cuda')\n\n"
    )
    text += f"torch.cuda.init()\ndatasets.load_dataset('a').map(work, num_proc={count})\n"
    found = analyse([SourceFile("train.py", text, text.encode())], Options()).findings
    assert [(f.code, f.severity.value) for f in found] == [("CUD104", severity)]


SHARING = """\
import argparse
import multiprocessing as mp

import torch


def work(name, cuda, double):
    device = "cuda" if cuda else "cpu"
    made = torch.zeros(3, device=device, dtype=torch.double) if double else torch.zeros(3).to(device)
    return {result}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--double", action="store_true")
    args = parser.parse_args()
    with mp.Pool(4) as pool:
        print(pool.starmap(work, [(name, args.cuda, args.double) for name in "abc"]))
"""


@pytest.mark.parametrize(("result", "code"), [("made.sum().item()", "CUD201"), ("made", "CUD302")])
def test_whether_workers_use_the_gpu_is_told_and_not_which_way_they_do(result: str, code: str) -> None:
    """As of compressai, whose benchmark of codecs measures on the GPU with `--cuda`."""
    text = SHARING.replace("{result}", result)
    found = analyse([SourceFile("bench.py", text, text.encode())], Options()).findings
    assert [(finding.code, finding.condition) for finding in found] == [(code, "if `--cuda` is given")]


_MORE_THAN_ONE = "if `--jobs` is more than 1"


@pytest.mark.parametrize(
    ("start", "condition"),
    [
        ("mp.get_context('spawn').Pool(args.jobs).map(use, [1, 2])", _MORE_THAN_ONE),
        ("mp.get_context('spawn').Pool(min(args.jobs, os.cpu_count())).map(use, [1, 2])", _MORE_THAN_ONE),
        ("mp.get_context('spawn').Pool(max(1, args.jobs)).map(use, [1, 2])", _MORE_THAN_ONE),
        ("mp.get_context('spawn').Pool(max(1, min(args.jobs, len(sys.argv) - 1))).map(use, [1, 2])", _MORE_THAN_ONE),
        (
            "ProcessPoolExecutor(max_workers=args.jobs, mp_context=mp.get_context('spawn')).map(use, [1, 2])",
            _MORE_THAN_ONE,
        ),
        ("Parallel(n_jobs=args.jobs)(delayed(use)(n) for n in range(3))", _MORE_THAN_ONE),
        ("spawn(use, nprocs=args.jobs)", _MORE_THAN_ONE),
        (
            "if args.jobs > len(sys.argv):\n        print('too many')\n        args.jobs = len(sys.argv)\n"
            "    mp.get_context('spawn').Pool(args.jobs).map(use, [1, 2])",
            _MORE_THAN_ONE,
        ),
        ("mp.get_context('spawn').Pool(max(2, args.jobs)).map(use, [1, 2])", None),
    ],
)
def test_an_option_for_one_worker_asks_for_several_where_it_is_given(start: str, condition: str | None) -> None:
    found = _of_workers(start)
    assert [(f.code, f.condition) for f in found] == [("CUD201", condition)]


@pytest.mark.parametrize("number", ["min(1, os.cpu_count())", "max(1, min(len(sys.argv), 1))", "min(args.jobs, 1)"])
def test_one_worker_at_most_shares_no_gpu(number: str) -> None:
    assert _of_workers(f"mp.get_context('spawn').Pool({number}).map(use, [1, 2])") == ()


def _of_workers(start: str) -> Sequence[Finding]:
    text = (
        "import argparse\nimport multiprocessing as mp\nimport os\nimport sys\n"
        "from concurrent.futures import ProcessPoolExecutor\nimport torch\nfrom joblib import Parallel, delayed\n"
        "from torch.multiprocessing import spawn\ndef use(n):\n    torch.zeros(n, device='cuda')\n"
        "if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
        f"    parser.add_argument('--jobs', type=int, default=1)\n    args = parser.parse_args()\n    {start}\n"
    )
    return analyse([SourceFile("jobs.py", text, text.encode())], Options()).findings
