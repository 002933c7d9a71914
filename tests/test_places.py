"""Where nodes of a tree stand is what libcst's own providers say, which take many times as long."""

from __future__ import annotations

import libcst as cst
import pytest
from fixture_markers import programs
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from cudalint.ir.places import Family, Places

ODD = {
    "parentheses and comments": "x = (  # one\n    (f)(a,\n      b)  # two\n)\n",
    "rows of every kind": "x = 1\r\ny = '''a\rb'''\rz = \\\n  2\n",
    "no end of line": "def f():\n\treturn  1",
    "nothing": "",
    "a form feed": "\x0cx = 1\n\x0cy = 2\n",
    "names that are given": "import a  as  b\nwith c as(d): del(e)\n",
    "newer syntax": "type X[T] = list[T]\nmatch x:\n    case [1, *_] | {'a': b, **c} if d: pass\n",
    "strings": 'x = f\'{a!r:>{b}}\' \'c\' """d\n"""\n',
}


@pytest.mark.parametrize(
    "text", [*ODD.values(), *(p.read_text("utf-8") for p in programs()[::25])], ids=[*ODD, *map(str, programs()[::25])]
)
def test_places_and_parents_are_those_of_libcst(text: str) -> None:
    tree = cst.parse_module(text)
    places, wrapper = Family(tree), MetadataWrapper(tree, unsafe_skip_copy=True)
    alone = Places(tree)
    ranges, parents = wrapper.resolve(PositionProvider), wrapper.resolve(ParentNodeProvider)
    for node, found in ranges.items():
        start, end = found.start, found.end
        assert places.place(node) == (start.line, start.column, end.line, end.column)
        assert alone.place(node) == places.place(node)
        assert places.parent(node) is parents.get(node)
        below = [one for child in node.children for one in places.inside(child)]
        assert {id(one) for one in places.inside(node)} == {id(node), *map(id, below)}


def test_nodes_below_a_node_are_in_the_order_of_the_text() -> None:
    tree = cst.parse_module("import torch  as  t\n")
    places = Family(tree)
    names = [
        tree.code_for_node(n) for n in places.inside(tree) if isinstance(n, cst.ImportAlias | cst.Name | cst.AsName)
    ]
    assert names == ["torch  as  t", "torch", "  as  t", "t"]


def test_a_node_of_another_tree_stands_nowhere() -> None:
    places = Family(cst.parse_module("x = 1\n"))
    other = cst.parse_module("x = 1\n")
    assert (places.place(other), places.parent(other), places.inside(other)) == (None, None, [])
