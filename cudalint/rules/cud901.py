"""# syntax-error (CUD901)

The file cannot be decoded, parsed or safely analysed.

## What it does
Reports a file that cudalint was asked to check and cannot read as a program:

- its bytes are no text in the encoding that it declares (UTF-8 without a declaration);
- it is not Python, or a notebook that is not JSON or older than format 4;
- it is nested too deep or too large to be parsed without risk, such as a chain of thousands of calls. Such files
  are generated; the parser would crash on them.

The message says which of the three. What is not Python is reported at the row and the column that Python's own parser
gives, in its words; the other two are about the file as a whole and stand at 1:1.

## Why it is bad
Nothing in the file was checked, and files that import it were checked without it: an import of a broken module has
no known effect. The other files are still checked, and the exit code is 1.

## Example
```python
import torch


def work(n:
    return torch.ones(n, device="cuda").sum().item()
```

## Use instead
```python
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()
```

## Fix
None. Where the file is broken on purpose, a test case for instance, name it under `exclude` or `per-file-ignores`.
A `noqa` does not help: in a file that cannot be parsed, comments cannot be told from text.

## When it stays silent
- Syntax that is newer than the Python cudalint runs on: the parser reads it.
- Magics, lines for a shell and cells in other languages in a notebook. A notebook whose kernel speaks another language
  is not read, which a line on standard error says.
- Files outside the given paths that are only read for context.
- In a run over more than 2 MB, files that are not named and in which nothing can matter: these are not parsed.
- A named path that does not exist: no finding, but a message and exit code 2.

## References
- [Python: encoding declarations](https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations)
- CUD900 for errors of cudalint itself.
"""

from cudalint.finding import Severity
from cudalint.rules.base import Rule

RULE = Rule(
    code="CUD901",
    name="syntax-error",
    severity=Severity.ERROR,
    summary="the file cannot be decoded, parsed or safely analysed",
)
