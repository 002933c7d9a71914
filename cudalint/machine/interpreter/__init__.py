"""The interpreter: programs on abstract states, one module per kind of thing that they do."""

from cudalint.machine.interpreter.entry import EntryOptions, EntryRecord, Purpose
from cudalint.machine.interpreter.hooks import Beginning
from cudalint.machine.interpreter.machine import Effects, Machine, Setting
from cudalint.machine.interpreter.program import Host, Program

__all__ = ["Beginning", "Effects", "EntryOptions", "EntryRecord", "Host", "Machine", "Program", "Purpose", "Setting"]
