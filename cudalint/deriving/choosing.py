"""Which arguments choose the GPU, found by trying them out."""

from __future__ import annotations

import re

from cudalint.deriving.effects import Level, Shown, shown
from cudalint.deriving.entry import Setting
from cudalint.deriving.subject import Subject
from cudalint.deriving.trials import Trial
from cudalint.ir import nodes as ir
from cudalint.machine.values import FALSE, NONE, TRUE, Value, const
from cudalint.structs import Frozen, replace

_MOST_PARAMETERS = 12
# What chooses a device where arguments are handed on: as transformers calls it, and as most do.
_HANDED_ON = ("device_map", "device")
_SOUNDS = re.compile(r"device|cuda|gpu", re.IGNORECASE)


class Choice(Frozen):
    """What decides whether a call uses the GPU, and a trial in which it does.

    ``settings`` are what a model says of it; none where each call does. ``beside`` is what it does in any case.
    ``idle`` are other arguments that keep it from the GPU.
    """

    settings: tuple[tuple[str, Setting], ...]
    trial: Trial
    shown: Shown
    beside: Level = Level.NONE
    idle: tuple[tuple[str, Setting], ...] = ()

    @property
    def conditional(self) -> bool:
        """Whether values of arguments decide, which only some effects understand."""
        return any(key in ("when", "unless") for key, _ in self.settings)


def choice(subject: Subject, plain: Trial) -> Choice | None:
    """What decides whether a function uses the GPU; None where its arguments do not show it."""
    always = shown(plain)
    # What sounds as if it chose a device is tried first; where the defaults stay off the GPU, nothing else is.
    names = suggestive(subject)
    if always.most is not Level.NONE:
        names = [*names, *(name for name in subject.names[:_MOST_PARAMETERS] if name not in names)]
    for name in names:
        for off, on, settings in _ways(subject, name):
            found = _decided(subject, plain, always, name, off, on, settings)
            if found is not None:
                return replace(found, idle=_idle(subject, found, name))
    return Choice((), plain, always, idle=_idle(subject, None, "")) if always.least > Level.NONE else None


def _idle(subject: Subject, found: Choice | None, name: str) -> tuple[tuple[str, Setting], ...]:
    """The other arguments without which a call does without the GPU: parts that it makes unless it is told not to."""
    if found is not None and ("default-gpu", True) not in found.settings:
        return ()
    without: dict[str, Setting] = {}
    for param in subject.params[: _MOST_PARAMETERS + 4]:
        default = param.default.value if isinstance(param.default, ir.Const) else None
        if param.name == name or not (default is True or (isinstance(default, str) and default)):
            continue
        trial = subject.run({param.name: FALSE if default is True else NONE})
        if trial is not None and trial.ends and not trial.cut and shown(trial).most is Level.NONE:
            without[param.name] = [False]
    return (("idle", without),) if without else ()


def _ways(subject: Subject, name: str) -> list[tuple[Value, Value, tuple[tuple[str, Setting], ...]]]:
    """The values that may choose the CPU and the GPU, and how a model says so; a switch by its default is one first."""
    named: tuple[tuple[str, Setting], ...] = (("device", name),)
    switched: tuple[tuple[str, Setting], ...] = (("when", {name: [True]}),)
    default = next((param.default for param in subject.params if param.name == name), None)
    value = default.value if isinstance(default, ir.Const) else None
    if isinstance(value, bool):
        # One that is off may also be what keeps the function on the CPU.
        kept: tuple[tuple[str, Setting], ...] = (("unless", {name: [True]}),)
        keeping = [] if value else [(TRUE, FALSE, kept)]
        return [(FALSE, TRUE, switched), *keeping, (const("cpu"), const("cuda"), named)]
    if isinstance(value, str) and value not in ("cpu", "cuda"):
        # A word that leaves the choice to the function does so where it is given, too.
        named = (*named, ("when", {name: [value]}))
    # A number says how much of something there is, and other words mean what they say: these are no switches.
    is_switch = value is None and _SOUNDS.search(name) is not None
    return [(const("cpu"), const("cuda"), named), *([(FALSE, TRUE, switched)] if is_switch else [])]


def suggestive(subject: Subject) -> list[str]:
    """The parameters that may choose a device, by how they are called or by their default; one may be handed on."""
    named = [param.name for param in subject.params if _could_choose(param)]
    handed_on = _HANDED_ON if subject.takes_more else ()
    return [*named, *(name for name in handed_on if name not in named)]


def _could_choose(param: ir.Param) -> bool:
    """Whether a parameter, by its name or its default, may choose a device."""
    is_cpu = isinstance(param.default, ir.Const) and param.default.value == "cpu"
    return is_cpu or _SOUNDS.search(param.name) is not None


def _decided(
    subject: Subject,
    plain: Trial,
    always: Shown,
    name: str,
    off: Value,
    on: Value,
    settings: tuple[tuple[str, Setting], ...],
) -> Choice | None:
    """The choice, if this parameter makes it: with one value the GPU is used on every way, with the other on none."""
    without = shown(subject.run({name: off}))
    if without.most > Level.QUERY:
        return None
    trial = subject.run({name: on})
    used = shown(trial)
    if trial is None or used.least <= without.most:
        return None
    is_needed = name in subject.names and name not in subject.defaults
    if is_needed or always.least < used.least:
        return Choice(settings, trial, used, without.least)
    return Choice((*settings, ("default-gpu", True)), plain, always, without.least)
