"""Single changes of a tree, each made in place; the result need not be a program that Python accepts."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator

Mutation = Callable[[ast.Module, random.Random], None]
Block = list[ast.stmt]

# What a statement is put into; `body` stands for it.
WRAPPERS = (
    "if unknown:\n    body\nelse:\n    body",
    "if unknown:\n    pass\nelif other:\n    body",
    "while unknown:\n    body\n    break\nelse:\n    body",
    "while True:\n    body\n    if unknown:\n        continue\n    break",
    "for item in unknown:\n    body\n    continue\nelse:\n    body",
    "for item, *rest in [(1, 2), (3, 4)]:\n    body",
    "with unknown as held, other() as (a, *b):\n    body",
    "with open(unknown) as held:\n    body",
    "try:\n    body\nexcept Exception as error:\n    body\n    raise error from None\nelse:\n    body\nfinally:\n    body",
    "try:\n    body\nfinally:\n    body",
    "try:\n    body\nexcept* (ValueError, OSError) as group:\n    body",
    "try:\n    raise ValueError\nexcept ValueError:\n    body",
    "match unknown:\n    case {'a': a, **rest} if a:\n        body\n    case [1, *others] | (2, others):\n        body\n"
    "    case object(x=3) as whole:\n        body\n    case _:\n        body",
    "def local(*args, key=None, **kwargs):\n    body\nlocal(*[1], **{'key': 2})",
    "def local(n=3):\n    body\n    return local(n - 1)\nlocal()",
    "def local():\n    body\n    yield from local()\n[*local()]",
    "async def local():\n    body\n    await local()\nimport asyncio\nasyncio.run(local())",
    "async def local():\n    async for item in unknown:\n        body\n    async with unknown() as held:\n        body\nlocal()",
    "class Local:\n    body",
    "class Local:\n    def __enter__(self):\n        body\n        return self\n    def __exit__(self, *error):\n        body\n"
    "        return True\nwith Local() as local:\n    body",
    "class Local:\n    def __call__(self):\n        body\n    def __getattr__(self, name):\n        return getattr(self, name)\n"
    "    @property\n    def value(self):\n        body\n        return self.value\nLocal()()\nLocal().value\nLocal().other",
    "class Meta(type):\n    def __call__(cls, *args):\n        body\n        return super().__call__(*args)\n"
    "class Local(metaclass=Meta):\n    pass\nLocal(1)",
    "if __name__ == '__main__':\n    body",
    "import threading\nimport multiprocessing\ndef local():\n    body\nmultiprocessing.Process(target=local).start()",
    "import os\nif os.fork() == 0:\n    body\nelse:\n    body",
)
# Statements put anywhere; NAME is a name of the program.
INSERTS = (
    "del NAME",
    "global NAME",
    "nonlocal NAME",
    "NAME = NAME",
    "NAME.__call__ = NAME()",
    "NAME.NAME = NAME",
    "NAME += NAME",
    "NAME = OTHER = (OTHER, NAME)",
    "NAME[:] = NAME[NAME:-1:2]",
    "NAME, (OTHER, *NAME) = OTHER, [NAME, OTHER]",
    "NAME = lambda *a, **k: NAME(*a, **k)",
    "return NAME",
    "yield NAME",
    "await NAME()",
    "raise NAME from OTHER",
    "assert (NAME := OTHER), NAME",
    "import NAME.OTHER as NAME",
    "from NAME import *",
    "from . import NAME",
    "from .NAME import OTHER as NAME",
    "NAME: OTHER[NAME] = OTHER",
    "class NAME(NAME, OTHER, metaclass=OTHER): pass",
    "class NAME(NAME): pass",
    "NAME = type('NAME', (OTHER,), {'NAME': NAME})",
    "NAME = [NAME for NAME in NAME if (NAME := OTHER)]",
    "NAME = {**NAME, 'a': OTHER, NAME: NAME}",
    "NAME.append(NAME)",
    "NAME = print(*NAME, *OTHER, **NAME, key=OTHER)",
    "NAME = f'{NAME!r:>{OTHER}}'",
    "NAME = globals()['NAME']",
    "setattr(NAME, 'OTHER', NAME)",
    "exec('NAME')",
    "NAME = super().NAME(NAME)",
    "NAME = staticmethod(NAME)",
    "NAME = property(NAME)",
    "__getattr__ = NAME",
    "__all__ = NAME",
    "from __future__ import annotations",
)
# What an expression becomes; `given` stands for it.
EXPRESSIONS = (
    "(held := given)",
    "next(item for item in [given])",
    "[given for _ in range(3)][0]",
    "{key: given for key in given}",
    "(lambda: given)()",
    "(lambda *a, given=given: given)(*[given])",
    "given if given else given",
    "not given",
    "given[given]",
    "given()",
    "given.attribute",
    "(given, *given)",
    "f'{given}'",
    "-given",
    "given < given <= given",
    "given and given or given",
    "given @ given",
    "None",
    "...",
    "10**400",
    "'\\x00\\ud800\\U0001f600'",
    "b'\\xff'",
    "1e400",
    "-1",
    "0",
    "''",
    "[]",
    "__import__('given')",
    "getattr(given, 'given', given)",
    "functools.partial(given, *given, **given)",
)


def _blocks(tree: ast.AST) -> list[Block]:
    """All lists of statements."""
    found = (getattr(node, name, None) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody"))
    return [block for block in found if isinstance(block, list) and block and isinstance(block[0], ast.stmt)]


def _place(tree: ast.Module, chance: random.Random) -> tuple[Block, int]:
    block = chance.choice(_blocks(tree) or [tree.body])
    return block, chance.randrange(len(block)) if block else 0


def _names(tree: ast.AST) -> list[str]:
    """The names of a program in the order of its text."""
    found = dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [*found, *(node.name for node in ast.walk(tree) if isinstance(node, kinds))] or ["unknown"]


def drop(tree: ast.Module, chance: random.Random) -> None:
    block, at = _place(tree, chance)
    if block:
        block[at : at + 1] = [] if len(block) > 1 else [ast.Pass()]


def double(tree: ast.Module, chance: random.Random) -> None:
    block, at = _place(tree, chance)
    if block:
        block.insert(at, copy.deepcopy(block[at]))


def move(tree: ast.Module, chance: random.Random) -> None:
    block, at = _place(tree, chance)
    if not block:
        return
    moved = block[at]
    block[at] = ast.Pass()
    other, place = _place(tree, chance)
    other.insert(place, moved)


def swap_statements(tree: ast.Module, chance: random.Random) -> None:
    (one, i), (two, j) = _place(tree, chance), _place(tree, chance)
    if one and two and not _within(one[i], two) and not _within(two[j], one):
        one[i], two[j] = two[j], one[i]


def _within(statement: ast.stmt, block: Block) -> bool:
    return any(found is block for found in _blocks(statement))


class _Filled(ast.NodeTransformer):
    """Puts statements where a template says ``body``."""

    def __init__(self, body: Block) -> None:
        self.body = body

    def visit_Expr(self, node: ast.Expr) -> ast.AST | Block:
        if isinstance(node.value, ast.Name) and node.value.id == "body":
            return copy.deepcopy(self.body)
        return node


def wrap(tree: ast.Module, chance: random.Random) -> None:
    block, at = _place(tree, chance)
    if not block:
        return
    end = chance.randint(at + 1, len(block))
    made = _Filled(block[at:end]).visit(ast.parse(chance.choice(WRAPPERS)))
    block[at:end] = made.body


def insert(tree: ast.Module, chance: random.Random) -> None:
    names = _names(tree)
    text = chance.choice(INSERTS).replace("NAME", chance.choice(names)).replace("OTHER", chance.choice(names))
    block, at = _place(tree, chance)
    block[at:at] = ast.parse(text).body


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Each expression that is read, with where it stands."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            places = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, found in places:
                if isinstance(found, ast.expr) and isinstance(getattr(found, "ctx", ast.Load()), ast.Load):
                    yield node, field, index, found


def _put(place: tuple[ast.AST, str, int | None, ast.expr], new: ast.expr) -> None:
    node, field, index, _ = place
    if index is None:
        setattr(node, field, new)
    else:
        getattr(node, field)[index] = new


class _Given(ast.NodeTransformer):
    def __init__(self, given: ast.expr) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.given) if node.id == "given" else node


def exchange(tree: ast.Module, chance: random.Random) -> None:
    """An expression becomes another one of the program."""
    found = list(_expressions(tree))
    if found:
        _put(chance.choice(found), copy.deepcopy(chance.choice(found)[3]))


def enclose(tree: ast.Module, chance: random.Random) -> None:
    """An expression becomes part of a larger one, or a literal."""
    found = list(_expressions(tree))
    if found:
        place = chance.choice(found)
        _put(place, _Given(place[3]).visit(ast.parse(chance.choice(EXPRESSIONS), mode="eval").body))


def swap_names(tree: ast.Module, chance: random.Random) -> None:
    """Two names change places, everywhere or at some places."""
    names = _names(tree)
    one, two = chance.choice(names), chance.choice(names)
    share = chance.choice((0.3, 1.0))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in (one, two) and chance.random() < share:
            node.id = two if node.id == one else one


def star(tree: ast.Module, chance: random.Random) -> None:
    """Arguments are handed over in containers, or parameters take all there are."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if calls and chance.random() < 0.7:
        call = chance.choice(calls)
        if chance.random() < 0.5:
            call.args = [ast.Starred(ast.List(call.args, ast.Load()), ast.Load())]
        named = [keyword for keyword in call.keywords if keyword.arg is not None]
        keys: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in named]
        call.keywords = [ast.keyword(None, ast.Dict(keys, [keyword.value for keyword in named]))]
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if functions:
        chance.choice(functions).args = ast.parse("def f(*args, **kwargs): pass").body[0].args  # type: ignore[attr-defined]


def decorate(tree: ast.Module, chance: random.Random) -> None:
    """A function or a class gets a decorator, a class a metaclass or a base."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    if not found:
        return
    node, names = chance.choice(found), _names(tree)
    known = (
        "staticmethod",
        "classmethod",
        "property",
        "functools.cache",
        "functools.wraps",
        "contextlib.contextmanager",
    )
    name = ast.parse(chance.choice((*known, *names)), mode="eval").body
    if isinstance(node, ast.ClassDef) and chance.random() < 0.6:
        if chance.random() < 0.5:
            node.bases.append(name)
        else:
            node.keywords = [ast.keyword("metaclass", name)]
        return
    node.decorator_list.insert(0, name)


ALL: tuple[Mutation, ...] = (
    drop, double, move, swap_statements, wrap, wrap, insert, insert, exchange, enclose, enclose, swap_names, star, decorate,
)  # fmt: skip
