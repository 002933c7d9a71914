"""What goes wrong: the outcomes that the machine emits and the rules name."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING

from cudalint.structs import Frozen

# Rules name outcomes, and a run that comes to nothing knows the rules: it is not to import the machine for that.
if TYPE_CHECKING:
    from cudalint.machine.assumptions import Assumption
    from cudalint.machine.questions import Either
    from cudalint.machine.trace import Site, TraceStep


class Kind(Enum):
    """What happened. Rules map these to codes; nothing else knows codes."""

    CUDA_IN_FORK = "cuda in a forked worker"
    CUDA_IN_LOADER_FORK = "cuda in a forked loader worker"
    FORK_LAUNCHER = "a launcher that forks inside"
    INHERITED_CUDA = "inherited cuda object touched"
    INHERITED_IN_LOADER = "inherited cuda object in a loader worker"
    METHOD_ALREADY_SET = "start method set too late"
    METHOD_WITHOUT_EFFECT = "start method set on another library"
    IMPORTED_AGAIN = "a spawn child runs it again"
    DAEMON_CHILD = "child of a daemon"
    UNPICKLABLE_TARGET = "target cannot be pickled"
    MISSING_GLOBAL = "global of the main guard"
    FOREIGN_LOCK = "lock of another context"
    SHARED_GPU = "several workers on one gpu"
    VISIBLE_TOO_LATE = "visible devices set too late"
    VISIBLE_PER_TASK = "visible devices set per task"
    HIDDEN_GPU = "gpu that the visible devices hide"
    DEVICE_STATEMENT = "device object as a statement"
    THREAD_DEVICE = "thread without a device"
    CONTEXT_OF_THREAD = "thread without a context"
    GROWTH_TOO_LATE = "memory growth set too late"
    MEMORY_NOT_SHARED = "gpu memory not shared"
    CUDA_TO_FORK = "cuda value to a forked worker"
    CUDA_ACROSS = "cuda value to another process"
    CUDA_THROUGH_JOBLIB = "cuda value through joblib"
    PRODUCER_ENDS = "producer ends first"
    UNPICKLABLE_CUDA = "cuda object that cannot be pickled"
    OWN_MEMORY = "cuda value taken back by who sent it"
    PIN_OF_CUDA = "pinning a cuda tensor"
    DEFAULT_DEVICE_LOADER = "default device and a loader"
    DEFAULT_DEVICE_SPLIT = "default device and a split"
    INIT_BEFORE_DEVICE = "process group before the device"
    COLLECTIVE_BEFORE_DEVICE = "collective before the device"
    BARRIER_BEFORE_DEVICE = "barrier before the device"
    BARRIER_GUESSES = "barrier that guesses another device"
    RANK_WITHOUT_DEVICE = "rank without a device"
    ALLOCATION_BEFORE_DEVICE = "allocation before the device"
    ALLOCATION_BEFORE_RANKS = "allocation before a launcher starts the other ranks"
    LOADED_ONTO_ONE = "checkpoint on one gpu in all ranks"
    RENDEZVOUS_NOT_SET = "rendezvous not set"
    RANK_NOT_SAID = "rank not said"
    GLOBAL_RANK_DEVICE = "global rank as a device"


# What goes wrong because a worker inherits what its parent did to CUDA: how workers are started averts it.
OF_INHERITING = frozenset(
    {Kind.CUDA_IN_FORK, Kind.CUDA_IN_LOADER_FORK, Kind.FORK_LAUNCHER, Kind.INHERITED_CUDA, Kind.INHERITED_IN_LOADER}
)


# What goes wrong where a loader is gone through.
OF_LOADERS = frozenset(
    {Kind.CUDA_IN_LOADER_FORK, Kind.INHERITED_IN_LOADER, Kind.PIN_OF_CUDA, Kind.DEFAULT_DEVICE_LOADER}
)


class Doubt(Enum):
    """Why an outcome is not certain, in words that end a message."""

    CALLER = "what its callers did before cannot be seen here"
    METHOD = "whether it forks cannot be seen here"
    GIVEN = "whether callers give what leads there cannot be seen here"
    MISSING = "that depends on a package that may be installed"
    DEFINED = "that depends on a package that may define it otherwise"
    USES = "what a package that is not known does with its device cannot be seen here"
    STARTS = "whether a package that is not known runs it in forked processes cannot be seen here"
    WRITTEN = "whether a file is there that the program writes cannot be seen here"
    TYPE = "of which type it is cannot be seen here"
    BUILT = "whether a package was built for GPUs cannot be seen here"
    ELSEWHERE = "on other paths the same workers do not fork"
    DEVICE = "which device is used cannot be seen here"
    PLACES = "whether ranks share a machine cannot be seen here"
    BOUND = "whether each task of Slurm sees a GPU of its own cannot be seen here"
    WORKERS = "whether it has workers cannot be seen here"
    TASKS = "how many tasks a worker is given cannot be seen here"
    THREADS = "JAX waits there for threads that a fork leaves behind, unless its arrays are small"
    NAMES = "which GPUs it names cannot be seen here"
    RELEASE = "that depends on the release"
    CHOSEN = "that depends on an option that is given"
    CUT = "not all that comes before could be looked at"


# The subject of a device object as a statement, where it names a GPU by a number, with which it can be selected.
NUMBERED = "numbered"


class Outcome(Frozen):
    """One thing that goes wrong on one path.

    ``how`` is what hardware shows: crash, hang, child-death, thread-death, wrong-device, cost.
    ``certain``: the cause was observed and no protective fact is in doubt; ``doubt`` says why not. ``assumed``: found
    from an entry with no known caller. ``caught``: the program handles it; ``told``: by sending the
    exception to another process, which waits for what the worker gives. ``outlived``: it ends a worker, and the
    parent handles that. ``chosen``: the program says how that worker is started, so that no caller decides it.
    ``detail`` fills messages. ``within`` is the launch in whose worker it happens: of those that share one, only the
    root cause is reported. ``facts`` are what its path assumed, ``assumptions`` what of that can be
    said, and ``choices`` that one of two things is so; ``outside``: those of the facts that do not depend on what its
    worker is given, where it has one; ``on_some_paths``: other paths do not make up for all of these. ``benign``: the
    code shows that it is meant, or that nothing comes of it as it stands. ``number``: the GPU that is meant is one that
    its process sees, under this number. ``unsaid``: it shows only because a bound ended the paths before it, or where
    one guess rests on another, and is not reported.
    """

    kind: Kind
    anchor: Site
    how: str
    certain: bool
    assumed: bool
    cause: tuple[TraceStep, ...] = ()
    launch: tuple[TraceStep, ...] = ()
    effect: tuple[TraceStep, ...] = ()
    caught: bool = False
    told: bool = False
    launcher: str = ""
    subject: str = ""
    detail: str = ""
    condition: str | None = None
    doubt: Doubt | None = None
    in_test: bool = False
    within: Site | None = None
    facts: tuple[tuple[Hashable, bool], ...] = ()
    choices: tuple[Either, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    outside: tuple[tuple[Hashable, bool], ...] | None = None
    on_some_paths: bool = False
    unsaid: bool = False
    outlived: bool = False
    chosen: bool = False
    benign: bool = False
    number: int | None = None

    @property
    def reason(self) -> Doubt | None:
        """What is in doubt: its caller before all else, unless the cause is seen and only the start method is not."""
        only_method = bool(self.cause) and self.doubt is Doubt.METHOD
        return Doubt.CALLER if self.assumed and not only_method else self.doubt

    @property
    def length(self) -> int:
        """Steps in all, for choosing the shortest."""
        return len(self.cause) + len(self.launch) + len(self.effect)
