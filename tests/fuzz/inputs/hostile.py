"""Programs of a shape that costs naive analyses dearly, in any size."""

from __future__ import annotations

import random
from collections.abc import Callable

from fuzz.case import Case

Shape = Callable[[int], dict[str, str]]

HEAD = "import multiprocessing\nimport torch\n"
WORK = "def work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
LAUNCH = "if __name__ == '__main__':\n    torch.cuda.init()\n    multiprocessing.Pool(2).map(work, [1, 2])\n"


def _one(middle: str, head: str = "", tail: str = "") -> dict[str, str]:
    """One program: a worker, something in the middle, a launch with a finding, and what follows it."""
    return {"program.py": f"{HEAD}{head}{WORK}{middle}{LAUNCH}{tail}"}


def _rows(n: int, row: str) -> str:
    """A row for each number, which stands for ``#``."""
    return "".join(row.replace("#", str(i)) + "\n" for i in range(n))


# -- breadth: what may cost as much as there is of it -----------------------------------------------------------------


def functions(n: int) -> dict[str, str]:
    return _one(_rows(n, "def f#(n):\n    return f#(n) + work(n)"))


def functions_in_a_chain(n: int) -> dict[str, str]:
    made = "".join(f"def f{i}(n):\n    return f{i + 1}(n)\n" for i in range(n))
    return _one(f"{made}def f{n}(n):\n    return work(n)\n", tail="    f0(1)\n")


def functions_that_are_called(n: int) -> dict[str, str]:
    return _one(_rows(n, "def f#(n):\n    return torch.ones(n)"), tail=_rows(n, "    f#(1)"))


def methods(n: int) -> dict[str, str]:
    return _one("class A:\n" + _rows(n, "    def f#(self):\n        return self.f#"), tail="    A().f0()\n")


def classes(n: int) -> dict[str, str]:
    return _one(_rows(n, "class A#:\n    def __call__(self): return A#()()"), tail=_rows(n, "    A#()"))


def classes_in_a_line(n: int) -> dict[str, str]:
    made = "".join(f"class A{i + 1}(A{i}):\n    x{i} = {i}\n" for i in range(n))
    return _one(f"class A0:\n    def run(self): return work(1)\n{made}", tail=f"    A{n}().run()\n")


def diamonds(n: int) -> dict[str, str]:
    made = "".join(
        f"class B{i}(A{i}): pass\nclass C{i}(A{i}): pass\nclass A{i + 1}(B{i}, C{i}): pass\n" for i in range(n)
    )
    return _one(f"class A0:\n    def run(self): return work(1)\n{made}", tail=f"    A{n}().run()\n    A{n}().missing\n")


def many_bases(n: int) -> dict[str, str]:
    bases = ", ".join(f"A{i}" for i in range(n))
    return _one(_rows(n, "class A#: pass") + f"class B({bases}): pass\n", tail="    B().missing()\n")


def launches(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    multiprocessing.Pool(2).map(work, [#])"))


def launches_in_functions(n: int) -> dict[str, str]:
    return _one(_rows(n, "def f#():\n    multiprocessing.Pool(2).map(work, [#])"), tail=_rows(n, "    f#()"))


def processes(n: int) -> dict[str, str]:
    row = "    p# = multiprocessing.Process(target=work, args=(#,))\n    p#.start()\n    p#.join()"
    return _one("", tail=_rows(n, row))


def forks(n: int) -> dict[str, str]:
    return _one("", head="import os\n", tail=_rows(n, "    if os.fork() == 0: work(#)"))


def modules(n: int) -> dict[str, str]:
    made = {f"m{i}.py": f"{HEAD}import m{i + 1}\ndef f{i}(): return m{i + 1}.f{i + 1}()\n" for i in range(n)}
    last = f"{HEAD}{WORK}def f{n}(): return work(1)\n"
    return {**made, f"m{n}.py": last, **_one("", head="import m0\n", tail="    m0.f0()\n")}


def modules_of_one_main(n: int) -> dict[str, str]:
    made = {f"m{i}.py": f"{HEAD}def f(): return torch.ones({i}).cuda()\n" for i in range(n)}
    return {**made, **_one("", head=_rows(n, "import m#"), tail=_rows(n, "    m#.f()"))}


def programs(n: int) -> dict[str, str]:
    return {f"main{i}.py": next(iter(_one("").values())) for i in range(n)}


def tests(n: int) -> dict[str, str]:
    return {"test_it.py": f"{HEAD}{WORK}" + _rows(n, "def test_#():\n    multiprocessing.Pool(2).map(work, [#])")}


def stars_in_a_circle(n: int) -> dict[str, str]:
    made = {f"p/m{i}.py": f"import torch\nfrom p.m{(i + 1) % n} import *\n" for i in range(n)}
    made[f"p/m{n - 1}.py"] += WORK
    return {
        "p/__init__.py": "",
        **made,
        "main.py": f"import multiprocessing\nimport torch\nfrom p.m0 import *\n{LAUNCH}",
    }


def stars_of_all(n: int) -> dict[str, str]:
    stars = "".join(f"from p.m{i} import *\n" for i in range(n))
    made = {f"p/m{i}.py": f"import torch\n{stars}x{i} = {i}\n" for i in range(n)}
    made["p/m0.py"] += WORK
    return {
        "p/__init__.py": "",
        **made,
        "main.py": f"import multiprocessing\nimport torch\nfrom p.m0 import *\n{LAUNCH}",
    }


def branches(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    if unknown(#): x# = torch.ones(#)"))


def branches_that_launch(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    if unknown(#): multiprocessing.Pool(2).map(work, [#])"))


def elifs(n: int) -> dict[str, str]:
    return _one("", tail="    if unknown(): pass\n" + _rows(n, "    elif unknown(#): x = #"))


def cases(n: int) -> dict[str, str]:
    return _one("", tail="    match unknown():\n" + _rows(n, "        case [#, x, *y]: x = #"))


def handlers(n: int) -> dict[str, str]:
    return _one("", tail="    try: unknown()\n" + _rows(n, "    except E# as e: x = #"))


def tries(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    try: work(#)\n    except RuntimeError: x# = #"))


def loops(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    for x in unknown(): y = torch.ones(x)"))


def literals(n: int) -> dict[str, str]:
    return _one("TABLE = [" + _rows(n, "    (#, '#', #.5),") + "]\n")


def a_dict(n: int) -> dict[str, str]:
    return _one("TABLE = {" + _rows(n, "    '#': [#, work],") + "}\n", tail="    TABLE['3'][1](1)\n")


def a_long_text(n: int) -> dict[str, str]:
    return _one(f"TEXT = '{'x' * n * 10}'\nDOC = '''{_rows(n, 'line #')}'''\n")


def a_sum(n: int) -> dict[str, str]:
    return _one("x = " + " + ".join(["1"] * min(n, 900)) + "\n")


def comments(n: int) -> dict[str, str]:
    return _one(_rows(n, "# pad"))


def equal_rows(n: int) -> dict[str, str]:
    return _one(_rows(n, "x = f(1, 2)"))


def equal_rows_behind(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    print('again')"))


def blank_rows(n: int) -> dict[str, str]:
    return _one("\n" * n)


def suppressions(n: int) -> dict[str, str]:
    return _one(_rows(n, "x# = 1  # noqa: CUD101"))


def rows_joined(n: int) -> dict[str, str]:
    return _one("x = 1; " * n + "y = 1\n")


def globals_set(n: int) -> dict[str, str]:
    return _one(
        _rows(n, "g# = torch.ones(#)") + _rows(n, "def s#():\n    global g#\n    g# = 1"), tail=_rows(n, "    s#()")
    )


def attributes_set(n: int) -> dict[str, str]:
    return _one("class A: pass\na = A()\n", tail=_rows(n, "    a.x# = torch.ones(#).cuda()") + "    print(a)\n")


def appended(n: int) -> dict[str, str]:
    return _one("held = []\n", tail=_rows(n, "    held.append(torch.ones(#).cuda())"))


def decorators(n: int) -> dict[str, str]:
    return _one(
        "def d(f):\n    return lambda *a: f(*a)\n" + _rows(n, "@d") + "def g(n): return work(n)\n", tail="    g(1)\n"
    )


def closures(n: int) -> dict[str, str]:
    return _one(_rows(n, "def f#(n):\n    def g(): return n\n    return g"), tail=_rows(n, "    f#(1)()"))


def lambdas(n: int) -> dict[str, str]:
    return _one(_rows(n, "f# = lambda n: work(n)"), tail=_rows(n, "    f#(1)"))


def context_managers(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    with unknown() as x#: y = x#"))


def generators(n: int) -> dict[str, str]:
    return _one(_rows(n, "def g#():\n    yield torch.ones(#)"), tail=_rows(n, "    for x in g#(): print(x)"))


def arguments(n: int) -> dict[str, str]:
    given, names = ", ".join(map(str, range(n))), ", ".join(f"a{i}" for i in range(n))
    return _one(f"def f({names}): return work(a0)\n", tail=f"    f({given})\n")


def imports(n: int) -> dict[str, str]:
    return _one("", head=_rows(n, "import package#.part as p#"))


def folders(n: int) -> dict[str, str]:
    made = {f"p{i}/__init__.py": "" for i in range(n)} | {f"p{i}/m.py": f"{HEAD}{WORK}" for i in range(n)}
    return {**made, **_one("", head=_rows(n, "from p#.m import work as w#"))}


def reached_through_names(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    x = a#.b.c.d.e.f.g.h"))


def closures_within_one_another(n: int) -> dict[str, str]:
    made = _rows(n, "def g#(f):\n    def h(n): return f(n)\n    return h\nf = g#(f)")
    return _one(f"f = work\n{made}", tail="    f(1)\n")


def partials(n: int) -> dict[str, str]:
    made = "    f = work\n" + _rows(n, "    f = functools.partial(f)")
    return _one("", head="import functools\n", tail=f"{made}    f(1)\n    multiprocessing.Process(target=f).start()\n")


def comprehensions(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    x# = [[a for a in b] for b in c#]"))


def formatted(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    s# = f'{a}{b!r:>{c}} # {torch}' + '%s-%d' % (a, #) + '{}'.format(#)"))


def a_text_that_grows(n: int) -> dict[str, str]:
    rows = "    s = ''\n" + _rows(n, "    s += str(#) + 'a'\n    s = s + 'x#'")
    return _one("", head="import os\n", tail=f"{rows}    os.environ[s] = s\n")


def values_that_grow(n: int) -> dict[str, str]:
    rows = "    s, t, d = [], (), {}\n" + _rows(n, "    s = s + [#]\n    t += (#,)\n    d = {**d, 'k#': #}")
    return _one("", tail=f"{rows}    multiprocessing.Pool(2).map(work, [*s, t, d])\n")


def silenced(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    multiprocessing.Pool(2).map(work, [#])  # noqa: CUD101"))


def globals_that_a_worker_reads(n: int) -> dict[str, str]:
    names = ", ".join(f"G{i}" for i in range(n))
    made = _rows(n, "G# = #") + f"def all_of():\n    return [{names}]\n"
    return _one(made, tail="    multiprocessing.Process(target=all_of).start()\n")


def objects_in_a_chain(n: int) -> dict[str, str]:
    rows = "    a = None\n" + _rows(n, "    a = A(a)")
    made = "class A:\n    def __init__(self, n): self.n = n\n"
    return _one(made, tail=f"{rows}    multiprocessing.Process(target=work, args=(a,)).start()\n")


def objects_in_a_list(n: int) -> dict[str, str]:
    made = "class A:\n    def __init__(self, n): self.n = torch.ones(n)\nxs = []\n"
    return _one(made, tail=_rows(n, "    xs.append(A(#))") + "    for x in xs: x.n.cuda()\n")


def classes_of_one_base(n: int) -> dict[str, str]:
    made = "class A:\n    def run(self): return 1\n" + _rows(n, "class B#(A):\n    def run(self): return work(#)")
    return _one(made, tail="    for c in A.__subclasses__(): c().run()\n")


def a_registry(n: int) -> dict[str, str]:
    made = "R = {}\ndef reg(f):\n    R[f.__name__] = f\n    return f\n" + _rows(
        n, "@reg\ndef f#(n): return torch.ones(n)"
    )
    return _one(made, head="import sys\n", tail="    R[sys.argv[1]](1)\n    for f in R.values(): f(1)\n")


def options(n: int) -> dict[str, str]:
    made = "p = argparse.ArgumentParser()\n" + _rows(n, "p.add_argument('--o#', type=int, default=#)")
    rows = "    a = p.parse_args()\n" + _rows(n, "    if a.o#: torch.ones(a.o#)")
    return _one(made, head="import argparse\n", tail=rows)


def fields(n: int) -> dict[str, str]:
    made = "@dataclasses.dataclass\nclass C:\n" + _rows(n, "    f#: int = #")
    rows = "    c = C()\n    for f in dataclasses.fields(c): print(getattr(c, f.name))\n"
    return _one(made, head="import dataclasses\n", tail=rows)


def questions_of_one_name(n: int) -> dict[str, str]:
    return _one("", tail="    m = unknown()\n" + _rows(n, "    if m == #: torch.ones(#)"))


def questions_asked_twice(n: int) -> dict[str, str]:
    rows = _rows(n, "    c# = unknown(#)\n    if c#: torch.ones(#)") + _rows(n, "    if c#: torch.ones(#)")
    return _one("", tail=rows)


def early_returns(n: int) -> dict[str, str]:
    made = _rows(n, "    if x == #: return torch.ones(#)\n    if x == 'k#': raise E#(x)")
    return _one(f"def f(x):\n{made}    return work(x)\n", tail="    f(unknown())\n")


def environment(n: int) -> dict[str, str]:
    rows = _rows(n, "    if os.environ.get('K#'): torch.ones(#)\n    os.environ['L#'] = '#'")
    return _one("", head="import os\n", tail=f"{rows}    multiprocessing.Process(target=work).start()\n")


def coroutines(n: int) -> dict[str, str]:
    awaited, all_of = _rows(n, "    await w(#)"), ", ".join(f"w({i})" for i in range(n))
    made = f"async def w(n): return work(n)\nasync def m():\n{awaited}    await asyncio.gather({all_of})\n"
    return _one(made, head="import asyncio\n", tail="    asyncio.run(m())\n")


def threads(n: int) -> dict[str, str]:
    return _one("", head="import threading\n", tail=_rows(n, "    threading.Thread(target=work, args=(#,)).start()"))


def submitted(n: int) -> dict[str, str]:
    rows = "    e = ProcessPoolExecutor()\n" + _rows(n, "    f# = e.submit(work, #)") + _rows(n, "    f#.result()")
    return _one("", head="from concurrent.futures import ProcessPoolExecutor\n", tail=rows)


def workers(n: int) -> dict[str, str]:
    made = _rows(n, "def w#(n): return work(n)")
    return _one(made, tail=_rows(n, "    multiprocessing.Process(target=w#).start()"))


def loaders(n: int) -> dict[str, str]:
    made = "class D(Dataset):\n    def __getitem__(self, i): return work(i)\n"
    rows = _rows(n, "    for x in DataLoader(D(), num_workers=2): print(x)")
    return _one(made, head="from torch.utils.data import DataLoader, Dataset\n", tail=rows)


def queues(n: int) -> dict[str, str]:
    return _one("", tail=_rows(n, "    q# = multiprocessing.Queue()\n    q#.put(torch.ones(#).cuda())"))


def layers(n: int) -> dict[str, str]:
    made = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    made += _rows(n, "        self.l# = nn.Linear(#, #)") + "    def forward(self, x):\n"
    made += _rows(n, "        x = self.l#(x)") + "        return x\n"
    return _one(made, head="import torch.nn as nn\n", tail="    M().cuda()(torch.ones(1).cuda())\n")


def collectives(n: int) -> dict[str, str]:
    rows = "    dist.init_process_group('nccl')\n" + _rows(n, "    dist.all_reduce(torch.ones(#).cuda())")
    return _one("", head="import torch.distributed as dist\n", tail=rows)


def paths_and_what_is_saved(n: int) -> dict[str, str]:
    rows = "    p = Path('a')\n" + _rows(n, "    p = p / 'd#'\n    torch.save(torch.ones(#).cuda(), p)")
    return _one("", head="from pathlib import Path\n", tail=rows + _rows(n, "    torch.load('f#.pt')"))


def programs_of_one_library(n: int) -> dict[str, str]:
    library = f"{HEAD}{WORK}def go():\n    multiprocessing.Pool(2).map(work, [1])\n"
    program = f"{HEAD}import lib\nif __name__ == '__main__':\n    torch.cuda.init()\n    lib.go()\n"
    test = f"{HEAD}import lib\ndef test_a():\n    torch.cuda.init()\n    lib.go()\n"
    made = {f"main{i}.py": program for i in range(n)} | {f"test_{i}.py": test for i in range(n)}
    return {"lib.py": library, **made}


def a_package_that_names_its_modules(n: int) -> dict[str, str]:
    made = {f"p/m{i}.py": f"{HEAD}def f{i}(): return torch.ones({i})\n" for i in range(n)}
    named = "".join(f"from .m{i} import f{i}\nfrom .m{i} import *\n" for i in range(n))
    return {
        **made,
        "p/__init__.py": named,
        **_one("", head="import p\nfrom p import *\n", tail=_rows(n, "    p.f#(); f#()")),
    }


def fixtures(n: int) -> dict[str, str]:
    asked = ", ".join(f"x{i}" for i in range(n))
    return {
        "conftest.py": "import pytest\nimport torch\n" + _rows(n, "@pytest.fixture\ndef x#(): return torch.ones(#)"),
        "test_it.py": f"{HEAD}{WORK}def test_it({asked}):\n    multiprocessing.Pool(2).map(work, [1])\n",
    }


def commands(n: int) -> dict[str, str]:
    made = _rows(n, "@cli.command()\ndef c#(): multiprocessing.Process(target=work).start()")
    return _one(f"@click.group()\ndef cli(): pass\n{made}", head="import click\n", tail="    cli()\n")


def routes(n: int) -> dict[str, str]:
    made = f"{HEAD}from fastapi import FastAPI\napp = FastAPI()\n{WORK}"
    return {"app.py": made + _rows(n, "@app.get('/#')\ndef r#(): return work(#)")}


GROWING: tuple[Shape, ...] = (
    functions, functions_in_a_chain, functions_that_are_called, methods, classes, classes_in_a_line, diamonds,
    many_bases, launches, launches_in_functions, processes, forks, modules, modules_of_one_main, programs, tests,
    stars_in_a_circle, stars_of_all, branches, branches_that_launch, elifs, cases, handlers, tries, loops, literals,
    a_dict, a_long_text, a_sum, comments, equal_rows, equal_rows_behind, blank_rows, suppressions, rows_joined,
    globals_set, attributes_set, appended, decorators, closures, lambdas, context_managers, generators, arguments,
    imports, folders, reached_through_names, closures_within_one_another, partials, comprehensions, formatted,
    a_text_that_grows, values_that_grow, silenced, globals_that_a_worker_reads, objects_in_a_chain, objects_in_a_list,
    classes_of_one_base, a_registry, options, fields, questions_of_one_name, questions_asked_twice, early_returns,
    environment, coroutines, threads, submitted, workers, loaders, queues, layers, collectives,
    paths_and_what_is_saved, programs_of_one_library, a_package_that_names_its_modules, fixtures, commands, routes,
)  # fmt: skip

# -- depth, and objects that lead to themselves: what must end --------------------------------------------------------


def brackets(n: int) -> dict[str, str]:
    return _one(f"x = {'[' * n}{']' * n}\n")


def calls(n: int) -> dict[str, str]:
    return _one(f"x = {'f(' * n}{')' * n}\n")


def chained(n: int) -> dict[str, str]:
    return _one(f"x = f{'.f()' * n}\n")


def subscripts(n: int) -> dict[str, str]:
    return _one(f"x = [0]\nx = x{'[0]' * n}\n")


def powers(n: int) -> dict[str, str]:
    return _one(f"x = {'2 ** ' * n}2\n")


def negations(n: int) -> dict[str, str]:
    return _one(f"x = {'not ' * n}y\nx = {'-' * n}1\n")


def ternaries(n: int) -> dict[str, str]:
    return _one(f"x = {'a if b else ' * n}c\n")


def nested_lambdas(n: int) -> dict[str, str]:
    return _one(f"x = {'lambda: ' * n}work(1)\n", tail=f"    x{'()' * min(n, 90)}\n")


def nested_blocks(n: int) -> dict[str, str]:
    depth = min(n, 95)
    return _one("".join(f"{' ' * i}if a{i}:\n" for i in range(depth)) + f"{' ' * depth}work(1)\n")


def nested_functions(n: int) -> dict[str, str]:
    depth = min(n, 95)
    return _one("".join(f"{' ' * i}def f{i}():\n" for i in range(depth)) + f"{' ' * depth}work(1)\n")


def nested_loops(n: int) -> dict[str, str]:
    depth = min(n, 19)
    return _one("".join(f"{' ' * i}for x{i} in y():\n" for i in range(depth)) + f"{' ' * depth}work(1)\n")


def nested_tries(n: int) -> dict[str, str]:
    depth = min(n, 19)
    opened = "".join(f"{' ' * i}try:\n" for i in range(depth))
    closed = "".join(f"{' ' * i}finally:\n{' ' * i} work({i})\n" for i in reversed(range(depth)))
    return _one(f"{opened}{' ' * depth}work(1)\n{closed}")


def nested_comprehensions(n: int) -> dict[str, str]:
    depth = min(n, 60)
    return _one(f"x = {'[' * depth}work(1){' for y in z()]' * depth}\n")


def nested_texts(n: int) -> dict[str, str]:
    return _one("x = " + "f'{" * 1 + "(" * min(n, 150) + "1" + ")" * min(n, 150) + "}'\n")


def huge_numbers(n: int) -> dict[str, str]:
    return _one(
        f"x = {'9' * min(n * 10, 4000)}\ny = 0x{'f' * n * 10}\nz = 1 << {n}000\nw = 10 ** 10 ** {n}\nv = 'a' * {n}0000000\n"
        f"u = [0] * {'9' * n}\nt = -1 << {n}\ns = 2 ** {'9' * n}\n",
        tail=f"    multiprocessing.Pool({'9' * n}).map(work, range({'9' * n}))\n    torch.ones(10 ** {n})\n",
    )


def calls_of_itself(n: int) -> dict[str, str]:
    return _one(
        "class A: pass\nA.__call__ = A()\n" + _rows(n, "class B#(A): pass\nB#.__call__ = B#()"),
        tail=f"    A(){'()' * n}\n",
    )


def properties(n: int) -> dict[str, str]:
    return _one(
        "class A:\n    @property\n    def x(self): return self.x\n    def __getattr__(self, name): return getattr(self, name + name)\n"
        "    def __getitem__(self, i): return self[i]\n    def __iter__(self): return iter(self)\n    def __len__(self): return len(self)\n"
        "    def __enter__(self):\n        with self: return self\n    def __exit__(self, *a): return self.__exit__(*a)\n"
        "    def __eq__(self, o): return self == o\n    def __bool__(self): return bool(self)\n    def __hash__(self): return hash(self)\n"
        "    def __reduce__(self): return A, (self,)\n    def __add__(self, o): return self + o\n    def __del__(self): del self\n"
        "    def __call__(self, *a): return self(*a)\n    def __next__(self): return next(self)\n    def __contains__(self, x): return x in self\n"
        "    def __setattr__(self, n, v): setattr(self, n, v)\n    def __new__(cls): return cls()\n    def __init__(self): self.__init__()\n"
        "    def __init_subclass__(cls):\n        class B(cls): pass\n    def __class_getitem__(cls, x): return cls[x]\n"
        "    def __get__(self, a, b): return self.y\n    def __set__(self, a, b): self.y = b\n    def __delattr__(self, n): del self.n\n"
        "    def __str__(self): return str(self)\n    def __format__(self, s): return f'{self}'\n    y = property(lambda self: self.y)\n"
        "A.z = A()\nclass C(A): pass\n",
        tail="    a = A()\n    a.x; a.q; a[0]; len(a); a == a; a + a; a(); next(a); 1 in a; a.y; a.z; del a.m; f'{a}'; A[1]\n"
        "    a.w = a\n    for b in a:\n        with b:\n            if b: multiprocessing.Process(target=a, args=(a,)).start()\n"
        * min(n, 5),
    )


def bound_to_itself(n: int) -> dict[str, str]:
    rows = "x = [x]\nx.append(x)\nx[0] = x\nd = {}\nd['d'] = d\nd.update(d)\ndef f(): pass\nf.f = f\nf = f.f.f\n"
    return _one(f"x = []\n{rows * n}", tail="    multiprocessing.Pool(2).map(f, x + [d, x, f])\n")


def metaclasses(n: int) -> dict[str, str]:
    return _one(
        "class M(type):\n    def __call__(cls, *a): return cls(*a)\n    def __getattr__(cls, n): return cls.n\n    @property\n"
        "    def p(cls): return cls.p\n    def __new__(m, *a): return m(*a)\n    def __prepare__(*a): return M('X', (), {})\n"
        "class A(metaclass=M): pass\nclass B(A, metaclass=A): pass\nclass D(D): pass\nclass E(A, A, B): pass\nM.__class__ = M\n"
        * min(n, 9),
        tail="    A(); B(); A.x; A.p; D(); E(A)(B)\n",
    )


def recursion(n: int) -> dict[str, str]:
    return _one(
        "def f(g, *a): return g(f, g, *a)\ndef y(f): return (lambda x: f(lambda *a: x(x)(*a)))(lambda x: f(lambda *a: x(x)(*a)))\n"
        + _rows(n, "def r#(n):\n    return r#(r#(n - 1)) if n else [r#(i) for i in range(n)]"),
        tail=f"    f(f, f)\n    y(y)(y)\n    r{n - 1}(r0)(5)\n",
    )


def launches_from_workers(n: int) -> dict[str, str]:
    row = "def w#(n):\n    with multiprocessing.Pool(2) as p: p.map(w@, [n])\n    multiprocessing.Process(target=w#).start()"
    made = "".join(row.replace("#", str(i)).replace("@", str((i + 1) % n)) + "\n" for i in range(n))
    return _one(made, tail="    w0(1)\n    multiprocessing.Process(target=w0, args=(w0,)).start()\n")


def import_circles(n: int) -> dict[str, str]:
    made = {
        f"m{i}.py": f"{HEAD}from m{(i + 1) % n} import f as f\nimport m{i}\nfrom m{i} import f\nf()\n" for i in range(n)
    }
    return {
        **made,
        **_one("", head="from m0 import f\nimport program\nfrom program import work as w\n", tail="    f(w)\n"),
    }


def generators_of_themselves(n: int) -> dict[str, str]:
    return _one(
        "def g():\n    yield from g()\n    x = yield g\n    for y in g(): yield y, x\n",
        tail="    [*g(), *map(g, g())]\n    sum(g(), g())\n" * min(n, 9),
    )


def values_of_themselves(n: int) -> dict[str, str]:
    return _one("", tail="    x = y = z = unknown()\n" + _rows(n, "    x = (x == y) < (x == z)\n    if x: print(x)"))


def tuples_of_themselves(n: int) -> dict[str, str]:
    return _one(
        "",
        tail="    x = ()\n    d = {}\n    for i in range(9):\n        x = (x, x)\n        d[x] = x in d\n" * min(n, 9),
    )


def odd_characters(n: int) -> dict[str, str]:
    return _one("x = '\\x1b]8;;evil\\x07\\u202e'\nдела = 'ﬀ'\nﬁ = 1\nfi = ﬁ\n" + "s = '\u202e\u2066\x85\u2028'\n" * n)


HOSTILE: tuple[Shape, ...] = (
    *GROWING, brackets, calls, chained, subscripts, powers, negations, ternaries, nested_lambdas, nested_blocks,
    nested_functions, nested_loops, nested_tries, nested_comprehensions, nested_texts, huge_numbers, calls_of_itself,
    properties, bound_to_itself, metaclasses, recursion, launches_from_workers, import_circles,
    generators_of_themselves, values_of_themselves, tuples_of_themselves,
    odd_characters,
)  # fmt: skip
# Large enough to cost, small enough to be checked in seconds.
SIZES = (1, 2, 3, 7, 20, 60, 150)


def draw(seed: int) -> Case:
    """A shape in some size."""
    shape = HOSTILE[seed % len(HOSTILE)]
    size = random.Random(seed).choice(SIZES)
    return made(shape, size)


def made(shape: Shape, size: int) -> Case:
    """A shape in a given size."""
    return Case(f"{shape.__name__}({size})", {name: text.encode() for name, text in shape(size).items()})
