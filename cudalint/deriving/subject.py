"""A function or method of a package that is tried out, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.deriving.trials import Trial, Trials, Where, parameters, positions
from cudalint.ir import nodes as ir
from cudalint.machine.values import Value, unknown
from cudalint.structs import Frozen, field


class Subject(Frozen):
    """What is called: a function or class at the top of a module, or a method of a class there.

    ``older`` and ``newer`` run it under Python before and after 3.14, whose default start methods differ. ``function``
    is where its parameters stand; None for a class without an ``__init__`` of its own. ``makes``: what is given goes to
    that function, which makes the instance whose method is called. ``reads``: the method is a property.
    """

    older: Trials
    newer: Trials
    module: str
    name: str
    function: ir.Function | None
    method: str = ""
    makes: ir.Function | None = None
    reads: bool = False
    _known: dict[object, Trial | None] = field(default_factory=dict)

    @property
    def params(self) -> list[ir.Param]:
        """What a caller may give."""
        function = self.makes or self.function
        bound = bool(self.method) or (function is not None and "." in function.qualname)
        return [] if function is None else parameters(function, bound=bound)

    @property
    def takes_more(self) -> bool:
        """Whether a caller may give by name what is not among its parameters."""
        function = self.makes or self.function
        return function is not None and any(p.kind is ir.ParamKind.VAR_KEYWORD for p in function.params)

    @property
    def names(self) -> list[str]:
        """The names of what a caller may give."""
        return [param.name for param in self.params]

    @property
    def positions(self) -> list[str]:
        """Those that may be given by position."""
        return positions(self.params)

    @property
    def defaults(self) -> frozenset[str]:
        """Those that may be left out."""
        return frozenset(param.name for param in self.params if param.default is not None)

    def run(self, given: Mapping[str, Value], where: Where = Where.FRESH) -> Trial | None:
        """Call it; what is not given is its default, else unknown. Defaults that it refuses are unknown, too."""
        return self._on(self.older, {**self._instead(given), **given}, where)

    def run_later(self, given: Mapping[str, Value], where: Where = Where.FRESH) -> Trial | None:
        """The same under the newer Python."""
        return self._on(self.newer, {**self._instead(given), **given}, where)

    def _instead(self, given: Mapping[str, Value]) -> Mapping[str, Value]:
        """What is given in place of the defaults, where no way through a call that leaves all to them comes back."""
        loosely = {name: unknown("derived", name) for name in self.defaults if name not in given}
        if not loosely or self.makes is not None:
            return {}
        plain = self._on(self.older, {}, Where.FRESH)
        return {} if plain is None or plain.ends or plain.cut else loosely

    def _on(self, trials: Trials, given: Mapping[str, Value], where: Where) -> Trial | None:
        key = (trials.host, tuple(sorted(given.items())), where, self.makes is not None and bool(given))
        if key not in self._known:
            self._known[key] = self._called(trials, given, where)
        return self._known[key]

    def _called(self, trials: Trials, given: Mapping[str, Value], where: Where) -> Trial | None:
        if self.makes is not None:
            return trials.method(self.module, self.name, self.method, {}, where, given, self.reads)
        if self.method:
            return trials.method(self.module, self.name, self.method, given, where, reads=self.reads)
        is_class = self.function is None or "." in self.function.qualname
        return trials.call(self.module, self.name, given, where, is_class)
