"""All transformations by name."""

from __future__ import annotations

import libcst as cst

from metamorphic import alias, blocks, branches, dead_code, device, queues, reformat, rename, split, start_method, wrap
from metamorphic.program import MAIN, Files
from metamorphic.transformation import Transformation


def _same(module: cst.Module) -> Files:
    return {MAIN: module}


# The program as it is: what paper and cudalint disagree on here is no fault of a transformation.
IDENTITY = Transformation("identity", preserving=False, apply=_same)

ALL = {
    found.name: found
    for found in (
        rename.RENAME,
        reformat.REFORMAT,
        dead_code.DEAD_CODE,
        split.SPLIT_WORKER,
        split.SPLIT_MAIN,
        alias.ALIAS,
        alias.FROM_IMPORT,
        alias.ASSIGNED,
        alias.REEXPORT,
        alias.STARS,
        alias.WHOLE,
        wrap.PARTIAL,
        wrap.CALLABLE,
        wrap.METHOD,
        branches.SWAP,
        branches.HELPER,
        branches.FIELD,
        blocks.IN_IF,
        blocks.IN_TRY,
        blocks.IN_WITH,
        blocks.IN_LOOP,
        blocks.BACKWARDS,
        blocks.EXTRACTED,
        IDENTITY,
        wrap.LAMBDA,
        start_method.SPAWN,
        start_method.FORK,
        start_method.GUILTY,
        start_method.ASKED,
        device.CPU,
        device.PARENT_CPU,
        queues.QUEUE_FORK,
        queues.QUEUE_SPAWN,
    )
}
