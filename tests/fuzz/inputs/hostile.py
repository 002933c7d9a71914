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


GROWING: tuple[Shape, ...] = (
    functions, functions_in_a_chain, functions_that_are_called, methods, classes, classes_in_a_line, diamonds,
    many_bases, launches, launches_in_functions, processes, forks, modules, modules_of_one_main, programs, tests,
    stars_in_a_circle, stars_of_all, branches, branches_that_launch, elifs, cases, handlers, tries, loops, literals,
    a_dict, a_long_text, a_sum, comments, equal_rows, equal_rows_behind, blank_rows, suppressions, rows_joined,
    globals_set, attributes_set, appended, decorators, closures, lambdas, context_managers, generators, arguments,
    imports, folders,
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
