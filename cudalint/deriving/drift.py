"""What models say of a package against a release of it: names and parameters that are not there any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files as resources

import tomli

from cudalint import disk
from cudalint.deriving.package import PackageSource
from cudalint.deriving.surface import Definition, Surface, Unclear
from cudalint.deriving.trials import parameters
from cudalint.ir import nodes as ir
from cudalint.ir.depth import MACHINE, room
from cudalint.ir.walk import inner_statements
from cudalint.models.library import load
from cudalint.models.releases import numbers, parsed
from cudalint.project.assembling import program
from cudalint.project.program import FileProgram
from cudalint.structs import Frozen, replace

# How conditions name a variable of the environment, which is no parameter.
_VARIABLE = "os.environ."
# The keys of an entry that name a parameter.
_NAMING = ("device", "function", "workers", "iterable", "initializer", "initargs", "args", "kwargs")
_MOST_BASES = 12


class Drift(Frozen):
    """What of the models a package does not have, one line each, and then how many names were compared."""

    lines: tuple[str, ...]
    drifted: bool


class _Named(Frozen):
    """A name that a model file says something of."""

    file: str
    name: str
    entry: Mapping[str, object]


def drift(source: PackageSource, models: Iterable[str]) -> Drift:
    """Compare the shipped models, and those of ``models``, with a package."""
    with room(MACHINE):
        files = program(source.sources, load(), source.package.root)
        return _compared(
            _Names(files, Surface(files, source.package.name), bool(source.compiled)), source, tuple(_named(models))
        )


def _compared(names: _Names, source: PackageSource, given: tuple[_Named, ...]) -> Drift:
    package = source.package
    made_up = _made_up(given)
    own = [one for one in given if one.name.removeprefix("import ").partition(".")[0] == package.name]
    own = [one for one in own if _is_about(one.entry, package.version)]
    if not own:
        return Drift((f"{package.title}: no model says anything of it",), False)
    lines: list[str] = []
    unclear = 0
    for one in own:
        found = names.lookup(one.name)
        if found is Unclear.MISSING and _is_made_up(one.name, made_up, names):
            unclear += 1
        elif found is Unclear.MISSING:
            lines.append(f"{one.file}: {one.name}: {package.title} has no such name")
        elif isinstance(found, Unclear):
            unclear += 1
        else:
            lines.extend(f"{one.file}: {one.name}: {wrong}" for wrong in names.wrong_parameters(found, one.entry))
    told = f"{package.title}: {len(own)} names of models compared, {unclear} of them made where no source shows it"
    return Drift((*lines, told), bool(lines))


def _is_about(entry: Mapping[str, object], version: str) -> bool:
    """Whether an entry holds for a release; one that is not known is taken for the newest."""
    told = parsed(str(entry["releases"])) if "releases" in entry else None
    if told is None:
        return True
    if not version:
        return told.end is None
    release = numbers(version)
    return told.first <= release and (told.end is None or release < told.end)


def _made_up(given: Iterable[_Named]) -> set[str]:
    """Types that only model files know, under which they keep methods together: what entries give, and their bases."""
    found: set[str] = set()
    for one in given:
        bases = one.entry.get("bases")
        told = (one.entry.get("type"), _thing(one.entry.get("returns")), *(bases if isinstance(bases, list) else ()))
        found.update(kind for kind in told if isinstance(kind, str))
    return found


def _thing(returns: object) -> str | None:
    """The type of the objects that a function gives, as ``thing:package.Type`` says."""
    return returns.removeprefix("thing:") if isinstance(returns, str) and returns.startswith("thing:") else None


def _is_made_up(name: str, made_up: set[str], names: _Names) -> bool:
    """Whether a name is, or lies in, a type that only a model file knows."""
    owner = name.rpartition(".")[0]
    return name in made_up or (owner in made_up and names.lookup(owner) is Unclear.MISSING)


def _named(models: Iterable[str]) -> Iterator[_Named]:
    shipped = sorted(p.name for p in resources("cudalint.models").iterdir() if p.name.endswith(".toml"))
    texts = [(name, (resources("cudalint.models") / name).read_text(encoding="utf-8")) for name in shipped]
    texts += [(path, disk.read(path, disk.MOST_SETTINGS_BYTES).decode()) for path in models]
    for file, text in texts:
        document = tomli.loads(text)
        for kind in ("function", "effect"):
            for entry in document.get(kind, ()):
                yield from (_Named(file, name, entry) for name in entry["names"] if "*" not in name.removesuffix(".*"))
        for alias in document.get("alias", {}):
            yield _Named(file, alias, {})
        for entry in document.get("type", ()):
            yield _Named(file, entry["name"], {"bases": entry.get("bases", [])})


class _Names(Frozen):
    """Dotted names looked up in the source of a package."""

    files: FileProgram
    surface: Surface
    is_compiled: bool

    def lookup(self, name: str) -> ir.Function | ir.ClassDef | Unclear:
        """What a name of a model is: ``pkg.function``, ``pkg.Type.method``, ``pkg.Type.*``, ``import pkg.module``."""
        parts = name.removeprefix("import ").removesuffix(".__get__").removesuffix(".*").split(".")
        module, rest = self._module(parts)
        if not rest:
            return Unclear.OPAQUE
        if name.startswith("import "):
            return self._missing(module)
        found = self.surface.lookup(module, rest[0])
        if isinstance(found, Unclear):
            return self._missing(module) if found is Unclear.MISSING else found
        return found.node if len(rest) == 1 else self._member(found, rest[1])

    def _module(self, parts: list[str]) -> tuple[str, list[str]]:
        """The longest module that a name begins with, and what is left of the name."""
        for end in range(len(parts), 0, -1):
            module = ".".join(parts[:end])
            if module in self.files.sources:
                return module, parts[end:]
        return "", parts

    def _missing(self, module: str) -> Unclear:
        """A name that is not there; where compiled parts may add it, that is not clear."""
        return Unclear.OPAQUE if self.is_compiled or not module else Unclear.MISSING

    def _member(self, owner: Definition, name: str, depth: int = 0) -> ir.Function | ir.ClassDef | Unclear:
        """A method of a class, or of those that it derives from."""
        node = owner.node
        if not isinstance(node, ir.ClassDef):
            return Unclear.OPAQUE
        for statement in node.body:
            if isinstance(statement, ir.FunctionDef) and statement.function.name == name:
                is_static = any(isinstance(d, ir.Name) and d.id == "staticmethod" for d in statement.decorators)
                # One that is given no instance has its parameters as a function outside of classes has.
                return replace(statement.function, qualname=name) if is_static else statement.function
        if name in _own_attributes(node):
            return Unclear.OPAQUE
        if depth > _MOST_BASES or node.decorators or _makes_attributes(node):
            return Unclear.OPAQUE
        found: ir.Function | ir.ClassDef | Unclear = Unclear.MISSING
        for base in node.bases:
            above = self.surface.lookup(owner.module, base.value.id) if isinstance(base.value, ir.Name) else None
            if not isinstance(above, Definition):
                return Unclear.OPAQUE
            found = self._member(above, name, depth + 1)
            if found is not Unclear.MISSING:
                return found
        return found

    def wrong_parameters(self, found: ir.Function | ir.ClassDef, entry: Mapping[str, object]) -> Iterator[str]:
        """The parameters that an entry names and a function does not have, or has elsewhere."""
        function, bound = _called(found)
        if function is None:
            return
        kinds = {param.kind for param in function.params}
        has = parameters(function, bound=bound)
        names = [param.name for param in has]
        by_position = [param.name for param in has if param.kind is ir.ParamKind.POSITIONAL]
        listed = entry.get("params")
        given = [str(name) for name in listed] if isinstance(listed, list) else []
        for place, name in enumerate(given):
            if ir.ParamKind.VAR_POSITIONAL in kinds:
                break
            if place >= len(by_position):
                # Those that are only taken by name may stand behind.
                break
            if by_position[place] != name:
                yield f"parameter {place + 1} is {by_position[place]}, not {name}"
                break
        if ir.ParamKind.VAR_KEYWORD in kinds:
            return
        naming = (str(entry[key]) for key in _NAMING if isinstance(entry.get(key), str))
        # Behind a dot stands what an argument holds, and behind ``self`` what its object was made of.
        asked = (name for name in (*naming, *_conditions(entry), *given) if not name.startswith(_VARIABLE))
        named = {name.partition(".")[0] for name in asked}
        for name in sorted(named - set(names) - {"self"}):
            yield f"it has no parameter {name}"


def _conditions(entry: Mapping[str, object]) -> Iterator[str]:
    for key in ("when", "unless", "default-when"):
        found = entry.get(key)
        yield from found if isinstance(found, Mapping) else ()


def _called(found: ir.Function | ir.ClassDef) -> tuple[ir.Function | None, bool]:
    """The function whose parameters a call fills, and whether the first is filled already."""
    if isinstance(found, ir.Function):
        return found, "." in found.qualname
    made = (s.function for s in found.body if isinstance(s, ir.FunctionDef) and s.function.name == "__init__")
    return next(made, None), True


def _own_attributes(node: ir.ClassDef) -> set[str]:
    """The attributes that the methods of a class set on what they are called on."""
    functions = (s.function for s in node.body if isinstance(s, ir.FunctionDef) and s.function.params)
    return {
        target.attr
        for function in functions
        for statement in _statements(function.body)
        for target in _targets(statement)
        if isinstance(target, ir.Attr)
        and isinstance(target.value, ir.Name)
        and target.value.id == function.params[0].name
    }


def _targets(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    match statement:
        case ir.Assign(targets=targets):
            return tuple(targets)
        case ir.Declare(target=target):
            return (target,)
    return ()


def _statements(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    for statement in body:
        yield statement
        yield from _statements(inner_statements(statement))


def _makes_attributes(node: ir.ClassDef) -> bool:
    """Whether a class has attributes that its body does not name."""
    assigned = any(isinstance(s, ir.Assign) for s in node.body)
    return assigned or any(isinstance(s, ir.FunctionDef) and s.function.name == "__getattr__" for s in node.body)
