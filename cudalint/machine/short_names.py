"""Short names of what values are made of: the same for what compares equal, in every process."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b

from cudalint.structs import Partly, Struct

# Bytes of a name. There are some thousands of them in a run.
_LENGTH = 8


def shortened(part: object) -> str:
    """A name that two parts of identities share only if they are equal."""
    return f"much {_digest(part, {})}"


# Names by where what they name lies in memory; what is named is held, so that nothing else comes to lie there.
_Known = dict[int, tuple[object, str]]


def _digest(part: object, known: _Known) -> str:
    """A name of what compares in a part; what is made of one thing twice, over and over, is gone through once."""
    found = known.get(id(part))
    if found is None:
        said = "\0".join((type(part).__qualname__, *_said(part, known)))
        name = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_LENGTH).hexdigest()
        found = known[id(part)] = part, name
    return found[1]


def _said(part: object, known: _Known) -> list[str]:
    """What tells a part from others of its type: nothing of provenance, which compares equal."""
    if isinstance(part, str):
        return [part]
    if isinstance(part, int | float | complex | bytes):
        return [repr(part)]
    if isinstance(part, tuple):
        return [_digest(one, known) for one in part]
    if isinstance(part, frozenset):
        return sorted(_digest(one, known) for one in part)
    if isinstance(part, Enum):
        return [part.name]
    if isinstance(part, type):
        return [part.__qualname__]
    if isinstance(part, Partly):
        return [_digest(part.compared(), known)]
    if isinstance(part, Struct):
        return [_digest(getattr(part, name), known) for name in part.__struct_fields__]
    return []
