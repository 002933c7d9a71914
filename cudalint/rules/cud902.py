"""# unused-suppression (CUD902)

A `noqa` comment names a CUD code that reports nothing there.

## What it does
Reports a `# noqa: CUDnnn` when the whole project was checked and that code has no finding on the call the comment
belongs to. A comment is one finding, however many codes it names. Codes of other tools in it are left alone, and so is
a bare `# noqa`.

## Why it is bad
A suppression is a claim: "I know about this, and it is all right". When its finding is gone, because the code was
repaired or the analysis has learned better, the claim is about nothing. It misleads readers, and it will swallow
the next finding that appears on that line.

## Example
```python
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))  # noqa: CUD101


if __name__ == "__main__":
    main()
```

## Use instead
```python
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))


if __name__ == "__main__":
    main()
```

## Fix
**Safe**: what reports nothing is removed from the comment, and the comment with it when no other code is left. Nothing that
runs changes.

## When it stays silent
- One file is checked alone (flake8, standard input): the finding may need the rest of the project to show.
- The code is not selected in this run, or the file has a CUD900 or CUD901.
- The `noqa` names CUD101 and the finding is CUD102, or the other way round: the two silence each other.
- The comment stands on any row of a call that has the finding, not only on its first.

## References
- docs/rules.md, the list of codes
"""

from cudalint.finding import Severity
from cudalint.rules.base import Rule

RULE = Rule(
    code="CUD902",
    name="unused-suppression",
    severity=Severity.WARNING,
    summary="a noqa comment names a CUD code that reports nothing there",
)
