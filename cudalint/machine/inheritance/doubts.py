"""What a proof reports: the launches of fresh processes, and the doubts about each."""

from __future__ import annotations

from enum import Enum

from cudalint.machine.trace import Site
from cudalint.structs import Frozen

# What a worker draws that computes with weights: what draws them has no name where they are used.
COMPUTING = "torch.nn"
# What tasks change that has no name of its own.
ARRAYS, NUMBERS = "a tensor or an array", "the random numbers of a GPU"


class Why(Enum):
    """Why a fresh process may not be what a forked one was."""

    SETS = "the parent sets something that a fresh process does not have"
    SEEDS = "the parent sets the course of random numbers"
    CALLS = "the parent calls something of which nothing is known"
    STORES = "the parent changes something that the code does not show whole"
    IMPORTS = "the parent imports something that a fresh process does not"
    REPEATS = "the import of a module does something that a fresh process repeats"
    DIFFERS = "the worker reads a variable that holds something else in a fresh process"
    HIDDEN = "the worker reads a variable whose content is not shown"
    UNSHOWN = "what the worker reads is not shown"
    LOOKS = "the worker calls something of which nothing is known, and which may look at its process"
    DRAWS = "the worker draws random numbers that it did not seed"
    SHARES = "one object is two in a fresh process"
    ORDER = "a set is iterated, whose order is another one in each fresh process"
    NAME = "the program asks for a name that is another one in a fresh process"
    NAMELESS = "the main module of a fresh process does not have what it is to run"
    AGAIN = "the import of a module changes what a fresh process has from its parent, and would change it twice"
    FILES = "the program changes a file that the imports of a fresh process read again"
    WAITS = "the program waits for a limited time, and a fresh process takes longer to start"
    HOW_FAR = "the program asks how far its workers are, or how long they took"
    CHILDREN = "the program meets all its children, of which fresh processes need one more"
    IDENTITY = "the worker asks whether two things are one, of which it has a copy"
    UNAWAITED = "the worker ends with a program that does not wait for it"
    DROPPED = "nothing but the arguments of a worker holds what a fresh process has yet to open"
    TRAVELS = "an iterator or a view of a dict may not pickle"
    STAYS = "a worker changes something of its own copy, and its parent looks at that afterwards"
    LEAVES = "a worker sets something in its process, and what comes after it would find that where a loop ran it"
    ONCE = "a function that remembers what it gave shows something, once in each process"
    RETURNED = "what a worker returns or raises does not come back as it is"
    UNPROVEN = "what the worker is given may not pickle"
    TAGGED = "a tensor loses the attributes that the program gave it when it travels"
    GRADIENTS = "a tensor that was computed with gradients does not pickle"
    EACH = "each of several workers goes through the whole of a dataset, as a program without them would do once"
    NESTED = "what the worker is given may be nested deeper than a pickler goes"
    AT_END = "a fresh process does something when it ends, and a forked one does not"
    AT_FORK = "a forked process does something when it starts, and a fresh one does not"
    KEPT = "a worker keeps what a task changed, and which worker is given which task differs"
    LEFT = "a task sets something in its process that a later one finds, if the same worker is given it"
    MIXED = "several workers show something, in whatever order they come to it"
    ARRIVES = "what workers give comes when it is ready, and the program shows in which order"
    LATER = "something is read some time after it was handed over, and the program changes or shows it by then"
    FAILS = "several workers fail, and the program tells the failure of which it was told first"
    GOES_ON = "a task fails, and others go on that a loop would never have come to"
    HANDLES = "the parent handles an exception when it starts a worker that asks for it"
    DESCRIPTOR = "the number of an open file is another one where fresh processes are started"
    FEWER = "fresh processes begin as they are needed, where forked ones begin all at once"
    LEFT_OPEN = "what is left open is cleaned up at the end of a fresh process, and not of a forked one"
    REUSED = "workers that are used again keep what they changed"
    TEXT = "the program looks at its own text, which is another one then"
    ROWS = "the program looks at the numbers of its rows"
    REPLACED = "the program puts something of its own in the place of what starts workers"
    CUT = "the code was not followed to its end"
    TESTED = "the program is a test, beside others"
    ASSUMED = "what comes before the launch is not seen"
    LENDS = "what the worker gives back lies in GPU memory that ends with it"
    ASKED_FOR = "tensors on the CPU are asked for where they are taken, of a worker that may have ended by then"
    IN_SHARED_MEMORY = "what is handed over is copied by a fork, and shared with a fresh process"
    STOPPED = "the worker was not seen to run"


class Doubt(Frozen):
    """One thing that may differ. ``name`` is empty where only its place says what it is."""

    why: Why
    name: str
    site: Site
    module: str = ""


class Inheritance(Frozen):
    """A launch of fresh processes, and the doubts whether they are what forked ones were."""

    anchor: Site
    method: str
    doubts: tuple[Doubt, ...]
