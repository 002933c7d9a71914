"""Sessions of TensorFlow 1: what they run on is started when one is made, as its configuration says."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, Ref, unknown
from cudalint.structs import replace

_CONFIGURATION = "tensorflow.compat.v1.ConfigProto"
_SESSION = "tensorflow.compat.v1.Session"


def configuration(machine: Machine, call: Call) -> Results:
    """``tf.ConfigProto(...)``: what it is given."""
    made = LibraryObject(_CONFIGURATION, dict(call.kwargs), call.site)
    return [(call.state, (call.state.new(("session configuration", call.site), made),))]


def session(machine: Machine, call: Call) -> Results:
    """``tf.Session(config=...)``: the GPU is started; a configuration may ask for growth, or for no GPU.

    One with a ``target`` runs in another process.
    """
    state = call.state
    config = call.get("config") or NONE
    if call.get("target") or any(_counts_devices(atom, call) for atom in config):
        return [(state, unknown("session", call.site))]
    if config != NONE and state.process.growth is None:
        where = machine.chain(state, call.site, f"{call.label} with a configuration")
        state.process = replace(state.process, growth=where)
    after = cuda.touch(machine, state, call.frame, call.site, "tensorflow", "use", call.label, context=True)
    if after is None:
        return []
    return [(after, (after.new(("session", call.site), LibraryObject(_SESSION, {}, call.site)),))]


def _counts_devices(atom: object, call: Call) -> bool:
    """``ConfigProto(device_count={"GPU": 0})``: how many GPUs it takes, perhaps none."""
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, LibraryObject) and found.type == _CONFIGURATION and "device_count" in found.fields
