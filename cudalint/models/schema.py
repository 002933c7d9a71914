"""What a model file may say. A bad entry is refused with its file, its name and what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from cudalint.models.releases import parsed

EFFECTS = frozenset({"none", "told", "query", "driver", "init", "use", "touch"})

# What a call leaves behind in its process: nothing; something that a fork inherits and a fresh process lacks; the same
# while a ``with`` statement or a decorated function lasts; the course of random numbers, which goes on with each draw;
# and what a spawned process gets when it starts: the working folder, the end of the path of modules, what exec keeps.
# ``draws``: it takes the next random numbers; ``weights``: it fills a new object with them; ``loaded``: it fills one
# with what was kept, instead of them.
STATES = frozenset({"none", "process", "scope", "seed", "folder", "path", "kept", "draws", "weights", "loaded"})
# What a function gives: an immutable value that its arguments decide, or an object that nothing else holds.
GIVES = frozenset({"value", "new"})

_TOP = frozenset(
    {
        "library", "alias", "constant", "arrays", "metadata", "pickler", "type", "function", "effect", "environment",
        "words", "methods", "trait", "arguments", "unfamiliar",
    }
)  # fmt: skip
# What may be said of names in one word.
TRAITS = frozenset(
    {
        "tells-time", "lists-files", "tells-progress", "pauses", "counts-children", "writes-names", "names-nothing",
        "pickles-by-name", "counts-gpus",
        "asks-of-file", "opens-file", "reads-file", "changes-file", "of-workers", "waits", "waits-if-told",
        "also-of-others", "awaits", "runs-at-end", "changes-inherited", "kept-by-system", "added-by-system",
        "reflects", "runs-at-fork", "tells-thread", "runs-later", "shows-at-import", "comes-with-package",
        "gives-texts", "may-give-none", "gives-rows", "gives-host-data", "program-without-gpu", "program-that-asks",
        "launches-ranks", "runs-programs",
        "equals-only-itself", "named-as-written", "makes-text", "has-text", "filters-modules", "gives-warning",
        "reads-content", "leaves-content", "seeds-all", "silent-at-import", "of-launchers",
        "on-console", "lets-go", "waits-for-child", "fills-shared", "takes-shared", "reads-shared", "as-they-come",
        "keeps-order",
        "calls-when-ready", "calls-at-once", "gives-earlier", "restores", "keeps-some", "chooses-sharing",
        "kept-for-events", "only-gives", "only-how-fast",
        "reads-json", "reads-toml", "reads-yaml", "shows-own-text", "shows-rows",
        "without-order", "gives-descriptor", "fails-first", "tells-failure", "reads-later", "draws-later",
        "ends-for-others", "ends-when-let-go", "removes-files", "indifferent", "learns", "learns-when-called",
        "sets-mode", "sets-place", "sets-type", "sets-gradients", "sets-weights", "sets-moment", "sets-numbers",
        "seeded-by",
        "moves-on", "makes-class", "of-other-hardware",
    }
)  # fmt: skip
_HEAD = frozenset({"name", "framework", "roots", "versions", "evidence", "owns", "least"})
FUNCTION_KEYS: dict[str, type | tuple[type, ...]] = {
    "names": list,
    "does": str,
    "params": list,
    "framework": str,
    "gpu": str,
    "context": bool,
    "current": str,
    "current-of": str,
    "device": str,
    "device-key": str,
    "device-index": str,
    "default-gpu": bool,
    "default-when": dict,
    "default-build": str,
    "returns": str,
    "type": str,
    "library": str,
    "family": str,
    "method": str,
    "workers": str,
    "function": str,
    "runs": str,
    "iterable": str,
    "iterables": str,
    "counted": str,
    "args": str,
    "kwargs": str,
    "star": bool,
    "leading": list,
    "failure": dict,
    "build": str,
    "until": str,
    "daemon": bool,
    "unasked": bool,
    "daemon-env": str,
    "method-env": str,
    "method-key": str,
    "methods": list,
    "hands": str,
    "hooks": str,
    "resets": str,
    "refuses": str,
    "requires": str,
    "unless-env": str,
    "releases": str,
    "decorator": bool,
    "children": str,
    "lazy": bool,
    "evidence": str,
    "versions": str,
    "when": dict,
    "unless": dict,
    "idle": dict,
    "needed": list,
    "iterator": bool,
    "parameters": bool,
    "pickle": str,
    "kind": str,
    "key": str,
    "value": str,
    "fixes-method": bool,
    "expected": bool,
    "grows": bool,
    "sets": dict,
    "passes": dict,
    "note": str,
    "state": str,
    "calls": bool,
    "marks": list,
    "plain": list,
}
_WORDS = frozenset({"gpu", "starts", "processes"})
_METHODS = frozenset({"aside", "compute", "likely", "parts"})
_ARGUMENTS = frozenset({"called"})
_UNFAMILIAR = frozenset(
    {
        "keepers", "notes", "text-classes", "makers", "tellers", "told", "askers", "asked", "testers", "devices",
        "switches", "numbers", "currents", "processes", "parallel", "loaders", "datasets", "givers", "items",
        "in-processes", "mappers", "transforms", "readers",
    }
)  # fmt: skip
_TRAIT_KEYS: dict[str, type | tuple[type, ...]] = {"names": list, "is": str, "place": int}
_EFFECT_KEYS: dict[str, type | tuple[type, ...]] = {
    "names": list,
    "state": str,
    "gives": str,
    "shows": bool,
    "pickle": str,
    "felt-by": list,
    "when": list,
    "unless": list,
    "ends": bool,
}
_HOW = frozenset({"crash", "hang", "child-death", "wrong-device", "cost"})


# What a function may be said to do; the machine has one effect for each.
DOES = frozenset(
    {
        "module.at-path", "module.of-spec", "module.run", "module.run-program", "module.enter", "module.imported",
        "config.composed", "config.configured", "config.set", "config.load", "environ.from-file",
        "settings.changed", "settings.has", "settings.mapping",
        "settings.names", "settings.option", "settings.parser", "settings.read", "settings.section",
        "augment", "placed.part", "pool.decorator", "reports",
        "partial-method", "partial.kept", "remembers", "property", "method-kind", "gathered", "subclasses", "weak",
        "future.outcome", "future.callback", "class.method", "class.patched", "command.context",
        "command.current-context",
        "stack.callback", "closing", "held", "held.called", "chain", "tee", "groups",
        "closing.leave", "queue.local", "queue.local.put", "queue.local.get", "queue.local.size", "event.local.asked",
        "event.local", "event.record", "event.local.give", "event.local.wait", "event.local.meet",
        "heap", "heap.push",
        "accelerator", "accelerator.device", "accelerator.prepare", "argparse.add", "argparse.command",
        "argparse.commands",
        "argparse.defaults",
        "argparse.parse", "argparse.record", "argparse.parser", "asdict", "bad-fork", "barrier", "becomes-program",
        "buffer", "buffer.contents", "built-with", "builtins.contains", "cache", "call",
        "at-exit", "sampler.listed", "sampler.drawn", "sampler.generator", "fork.hooks", "fork.hooked", "backward",
        "cast", "celery.app", "celery.discover", "celery.register", "celery.settings", "celery.signal",
        "celery.task", "celery.task.bound",
        "celery.worker", "cluster", "collective", "collective.batch",
        "collate", "collate.add",
        "collective.object", "command.add", "command.call", "command.wrapped", "command.group",
        "command.group.add", "command.group.function", "command.group.run", "command.loop", "command.object",
        "events.loop",
        "pipeline.make", "pipeline.run", "command.given", "command.handed", "command.invoke", "command.run",
        "command.option",
        "command.plain", "device.module", "instantiate", "eval", "exec", "located", "members", "member-names", "names",
        "signature",
        "command.with-option", "command.words", "compiled", "compose",
        "component", "component.kept", "components", "compose.call",
        "config.create", "config.of-arguments",
        "config.dotlist", "config.item", "config.merge", "config.overlay", "config.plain", "config.select",
        "config.structured", "consume", "container", "control", "copy", "counter",
        "context.copied", "context.run", "context-variable", "context-variable.get", "context-variable.reset",
        "context-variable.set", "copy.deep",
        "django.as-view", "django.include", "django.manage", "django.request", "django.route", "django.setup",
        "django.task", "django.view",
        "dali.build", "dali.define", "dali.make", "dali.pipeline", "dali.source", "dali.start",
        "dataclass.field", "dataclass.fields", "dataclass.replace", "dataset.item", "dataset.part",
        "dataset.stacked", "dataset.tensors", "dataset.transform", "dataset.wrapped", "ddp",
        "dataset.from-generator", "dataset.with-format", "dataset.with-transform",
        "decorator", "default-device", "default.enter", "default.exit",
        "default-cpu.choose", "default-cpu.enter", "default-cpu.exit", "default-cpu.set",
        "defaultdict", "delayed", "delayed.task",
        "lazy.compute", "lazy.task",
        "device", "device.enter", "device.exit", "device.object", "dict", "dict.chained", "dict.init", "dict.method",
        "dict.wrap",
        "dispatch", "dispatch.call", "dispatch.register", "dispatch.registered", "drawn", "engine", "enumerate",
        "environ.contains",
        "copied-environ", "environ.delete", "environ.get", "environ.read", "environ.joined", "environ.preset",
        "environ.set", "environ.settings",
        "environ.update", "environ.worker", "environments", "environments.of",
        "environments.copies", "dataset.mapped", "dataset.stages", "dataset.moved", "dataset.fetched", "loader.eager",
        "loader.items", "loader.set", "loader.mapping", "loader.cut",
        "loader.served", "loader.service",
        "own-method",
        "environments.worker", "estimator", "estimator.fit", "executor", "executor.configured", "executor.loop",
        "filter",
        "fabric", "fabric.device", "fabric.launch",
        "first-argument", "flags", "flags.define", "fork", "fork-launcher", "fresh-process", "future", "futures.wait",
        "generate", "generator.enter", "generator.method", "getattr", "getattr.plain", "cache.clear", "regex.item",
        "stack.pop_all", "stack.push", "mixin.get", "mixin.contains", "mixin.setdefault", "mixin.pop", "mixin.keys",
        "mixin.values", "mixin.update", "gpu",
        "graph", "graph.add", "graph.order",
        "hook", "hook.remove",
        "group", "group.backend", "group.destroy", "group.engine", "group.initialized", "group.new", "group.rank",
        "group.select", "group.size", "growth", "growth.configured", "gunicorn.run",
        "gunicorn.set", "delattr", "hasattr", "identity", "import-module", "is-initialized", "isinstance",
        "isinstance-of-type", "issubclass", "register-class", "register-reducer", "set-item", "argv", "not-at-exit",
        "is-callable", "is-class", "is-dataclass", "iter", "options.own", "options.parsed", "options.parser",
        "job", "job.decorator", "jobs.run",
        "kernel", "kernel.made", "keras.dataset", "keras.fit", "keras.generated", "keras.model", "keras.rows",
        "len", "lent", "like", "list.init", "list.method", "managed", "load", "load.item", "loader", "loader.info",
        "loader.iter", "loader.worker", "lock", "lookup", "manager", "map", "method.all",
        "method.context", "method.get", "manager.ask",
        "loader.sampling", "manager.base", "manager.each", "manager.item", "manager.make", "manager.register",
        "manager.serve", "manager.start", "manager.store", "mock", "mock.call", "mock.enter", "mock.exit", "mock.patch",
        "mock.variables", "mock.variables.enter", "mock.variables.exit",
        "method.preload", "method.set", "module", "module.call", "module.child", "module.data", "module.device",
        "module.init", "module.listed", "module.offload", "module.part",
        "module.hold", "module.tensor", "move", "namedtuple", "namespace", "next", "nothing", "object.new",
        "own-instance", "parallel",
        "parallel.backend", "parallel.backend.exit", "parallel.call", "parallel.enter", "parallel.exit",
        "parallel.imported", "partial", "pickle.dump", "pickle.load",
        "connection", "pid", "pin", "pipe", "placed", "pool", "pool.apply", "pool.end", "pool.map",
        "pool.once", "pool.handed", "pool.subclass", "process", "process.alive", "process.current", "process.join",
        "process.parent", "process.start", "put", "cycle", "count", "islice", "slice", "queue.enqueue", "queue.work",
        "product", "queue.worker", "range", "reader", "reader.read", "record.validated", "reduce",
        "repeat", "run-target", "save", "search",
        "session", "session.configuration",
        "search.fit", "search.pipeline", "search.pipeline.fit", "search.validate", "sentinel", "server.annotated",
        "server.application", "server.class", "server.component",
        "server.depends", "server.event", "server.import", "server.item",
        "server.register", "server.request", "server.routes", "server.fork", "server.run", "server.started",
        "answer.streamed",
        "server.set-item", "set-device", "setattr", "show", "spawn", "spawn.agent", "spread",
        "remote", "remote.decorator", "remote.given", "remote.gpus", "remote.map", "remote.options", "remote.run",
        "remote.start",
        "runner", "runner.flow", "runner.map", "runner.serve", "runner.submit", "runner.task",
        "isolated", "isolated.decorator", "isolated.call",
        "isolated.now", "spawn.elastic", "spawn.join", "stack.enter", "stack.leave",
        "socket.answer", "socket.application", "socket.finish", "socket.function", "socket.handler", "socket.process",
        "socket.serve", "socket.server",
        "signal.handle", "signal.killed", "signal.raised",
        "called-later", "timed", "schedule", "schedule.run", "selector.register", "selector.select", "warned",
        "log.adapted", "log.adapter", "log.attach", "log.child", "log.configure",
        "log.enabled", "log.format", "log.queue", "log.record", "log.settings",
        "starmap", "exit", "finalizer", "stop",
        "str.method", "str.template",
        "suite", "suite.add", "suite.case", "suite.load", "suite.run",
        "stream", "stream.scope", "super", "suppress", "tensor", "tests.run",
        "test.fixture", "test.parametrize", "test.row", "test.skip", "text-pipe", "text-pipe.add", "text-pipe.worker",
        "thread", "thread.call", "thread.alive", "thread.cancel", "thread.join", "thread.start",
        "thread.trials", "through", "trainer",
        "trainer.fit", "trainer.loops", "trainer.rank",
        "trainer.strategy", "tree.map", "transformers.arguments", "transformers.evaluate", "transformers.train",
        "transformers.trainer", "type", "type-arguments", "type-hints", "written-bases", "type.call",
        "unknown-map", "value.get", "value.set", "vars", "visible", "version", "wait", "workers",
        "wrapped", "wraps", "zip",
    }
)  # fmt: skip
_PICKLERS = frozenset({"names", "locals", "globals"})


class ModelError(Exception):
    """A model file that cannot be used; the text says which entry and why."""


def validate(document: Mapping[str, object], source: str) -> None:
    """Refuse what the loader would not understand."""
    _only(document, _TOP, source, "table")
    head = document.get("library", {})
    if not isinstance(head, Mapping) or "name" not in head:
        raise ModelError(f"{source}: [library] needs a name")
    _only(head, _HEAD, f"{source}: [library]", "key")
    for key in ("alias", "constant", "arrays", "metadata"):
        _table(document, key, source)
    for root, names in _table(document, "environment", source).items():
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ModelError(f"{source}: environment.{root} must be a list of names of variables")
    for kind, words in _table(document, "words", source).items():
        _only({kind: words}, _WORDS, f"{source}: [words]", "key")
        _texts(words, f"{source}: words.{kind}")
    for table, allowed in (("methods", _METHODS), ("arguments", _ARGUMENTS), ("unfamiliar", _UNFAMILIAR)):
        for kind, names in _table(document, table, source).items():
            _only({kind: names}, allowed, f"{source}: [{table}]", "key")
            _texts(names, f"{source}: {table}.{kind}")
    for library, how in _table(document, "pickler", source).items():
        if how not in _PICKLERS:
            raise ModelError(f"{source}: pickler.{library} must be one of {', '.join(sorted(_PICKLERS))}, not {how!r}")
    for entry in _list(document, "type", source):
        if not isinstance(entry.get("name"), str):
            raise ModelError(f"{source}: a [[type]] needs a name")
        _only(entry, frozenset({"name", "bases", "attributes"}), f"{source}: type {entry['name']}", "key")
    for entry in _list(document, "function", source):
        _function(entry, source)
    for entry in _list(document, "effect", source):
        _effect(entry, source)
    for entry in _list(document, "trait", source):
        _trait(entry, source)


def _named(entry: Mapping[str, object], what: str, keys: Mapping[str, type | tuple[type, ...]], source: str) -> str:
    """Check the names and the types of an entry; gives how to call it."""
    names = entry.get("names")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ModelError(f"{source}: a [[{what}]] needs names, a list of dotted names")
    where = f"{source}: {what} {names[0]}"
    _only(entry, frozenset(keys), where, "key")
    for key, value in entry.items():
        if not isinstance(value, keys[key]):
            wanted = keys[key]
            name = wanted.__name__ if isinstance(wanted, type) else "value"
            raise ModelError(f"{where}: {key} must be a {name}, not {value!r}")
    _one_of(entry, "state", STATES, where)
    return where


def _one_of(entry: Mapping[str, object], key: str, allowed: frozenset[str], where: str) -> None:
    given = entry.get(key)
    if given is not None and given not in allowed:
        near = _nearest(str(given), allowed)
        raise ModelError(f"{where}: {key} must be one of {', '.join(sorted(allowed))}, not {given!r}{near}")


def _trait(entry: Mapping[str, object], source: str) -> None:
    where = _named(entry, "trait", _TRAIT_KEYS, source)
    if "is" not in entry:
        raise ModelError(f"{where}: is is missing: it names the trait")
    _one_of(entry, "is", TRAITS, where)


def _effect(entry: Mapping[str, object], source: str) -> None:
    where = _named(entry, "effect", _EFFECT_KEYS, source)
    _one_of(entry, "gives", GIVES, where)
    _one_of(entry, "pickle", frozenset({"never"}), where)
    for key in ("felt-by", "when", "unless"):
        _texts(entry.get(key, []), f"{where}: {key}")


def _function(entry: Mapping[str, object], source: str) -> None:
    where = _named(entry, "function", FUNCTION_KEYS, source)
    does = entry.get("does")
    if not isinstance(does, str):
        raise ModelError(f"{where}: does is missing: it names what the function does")
    if does not in DOES:
        raise ModelError(f"{where}: nothing is known that does {does!r}{_nearest(does, DOES)}")
    for key in ("marks", "methods", "plain"):
        _texts(entry.get(key, []), f"{where}: {key}")
    if "releases" in entry and parsed(str(entry["releases"])) is None:
        raise ModelError(
            f"{where}: releases must be a package and a range, as in 'torch >=2.1,<2.5', not {entry['releases']!r}"
        )
    effect = entry.get("gpu", "none")
    if effect not in EFFECTS:
        raise ModelError(f"{where}: gpu must be one of {', '.join(sorted(EFFECTS))}, not {effect!r}")
    if entry.get("current", "needs") not in ("makes", "needs", "takes"):
        raise ModelError(f"{where}: current must be makes, needs or takes, not {entry['current']!r}")
    failure = entry.get("failure", {})
    for stage, how in failure.items() if isinstance(failure, Mapping) else ():
        if how not in _HOW:
            raise ModelError(f"{where}: failure.{stage} must be one of {', '.join(sorted(_HOW))}, not {how!r}")


def _table(document: Mapping[str, object], key: str, source: str) -> Mapping[str, object]:
    found = document.get(key, {})
    if not isinstance(found, Mapping):
        raise ModelError(f"{source}: [{key}] must be a table")
    return found


def _texts(found: object, where: str) -> None:
    if not isinstance(found, list) or not all(isinstance(word, str) and word for word in found):
        raise ModelError(f"{where} must be a list of words")


def _list(document: Mapping[str, object], key: str, source: str) -> list[Mapping[str, object]]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(e, Mapping) for e in found):
        raise ModelError(f"{source}: [[{key}]] must be a list of tables")
    return found


def _only(found: Mapping[str, object], allowed: frozenset[str], where: str, what: str) -> None:
    for key in found:
        if key in allowed:
            continue
        raise ModelError(f"{where}: unknown {what} {key!r}{_nearest(key, allowed)}")


def _nearest(word: str, known: frozenset[str]) -> str:
    near = difflib.get_close_matches(word, sorted(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
