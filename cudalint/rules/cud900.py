"""# internal-error (CUD900)

cudalint failed on this file.

## What it does
Tells you that the analysis of a file ended in an error of cudalint itself, at 1:1 of that file. The other files are
checked as usual, and the exit code is 2.

## Why it is bad
The file was not checked, or not to its end. A silent skip would look like a clean result, and a traceback would
take the other files along; so it is a finding of its own.

It says nothing about your program. It is a mistake in cudalint, and we would like to know about it.

## What to do
- Run `cudalint check --verbose FILE`: it prints the error with its place in cudalint.
- Report it, with that text and, if you can, the smallest file that shows it.
- Until it is repaired, leave the file out with `exclude`, or the code with `per-file-ignores`, so that the others
  can pass.

A file that cannot be read or parsed is not this: it is CUD901, and exit code 1.

## Fix
None.

## When it stays silent
- A limit of the analysis was reached: the rest of that path is not followed, and `--verbose` says so.
- A call or a library that cudalint does not know: it is taken as harmless, and docs/soundness.md says what that
  means.

## References
- docs/soundness.md
"""

from cudalint.finding import Severity
from cudalint.rules.base import Rule

RULE = Rule(
    code="CUD900",
    name="internal-error",
    severity=Severity.ERROR,
    summary="cudalint failed on this file",
)
