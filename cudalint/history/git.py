"""Files of a git revision, read from objects: neither the work tree nor the index is looked at or changed.

Only plumbing is called, none of which runs hooks, filters or a pager. Nothing is fetched, and a folder that has the
looks of a bare repository is not taken for one, because its configuration may have come with the program.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

from cudalint import disk
from cudalint.structs import Frozen

_LINK = b"120000"
_PROGRAM = b"100755"
_BLOB = b"blob"
_COMMIT = b"commit"
_PART = 1_000_000
_OPTIONS = ("--no-pager", "--literal-pathspecs", "-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false")
# What hooks set for the programs that they start; the repository is to be found by its folder alone.
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


class GitError(Exception):
    """Why there are no files, on one line."""


class _Item(Frozen):
    """One file of a revision, or a submodule."""

    mode: bytes
    kind: bytes
    name: bytes
    path: str


class Repository(Frozen):
    """A repository with a work tree, whose top is ``top``."""

    top: str

    def commit(self, revision: str) -> str:
        """The name of the commit that a revision means; raises ``GitError``."""
        # No name of a revision begins so: it would be an option.
        known = None if revision.startswith("-") else self._asked(f"{revision}^{{commit}}")
        if known is not None:
            return known
        if self._run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
            more = "; this is a shallow clone: fetch more of its history (git fetch --unshallow, or fetch-depth: 0)"
        else:
            more = ""
        if self._asked("HEAD") is None:
            more = "; nothing was committed here yet"
        raise GitError(f"git knows no revision {revision!r}{more}")

    def write(self, commit: str, folder: str, is_wanted: Callable[[str, bool], bool]) -> None:
        """Put files of a commit below a folder, and those of its submodules that are there.

        ``is_wanted`` is given a path with forward slashes, and whether the file is executable. Links stay links.

        Raises:
            GitError: where git fails, or lacks a file.
        """
        rows = list(self._rows(commit))
        for module in rows:
            if module.kind == _COMMIT and _lies_apart(module, rows):
                self._write_module(module, folder, is_wanted)
        # Links come last, so that nothing is written through one where names differ in case only.
        items = sorted(
            (row for row in rows if row.kind == _BLOB and is_wanted(row.path, row.mode == _PROGRAM)), key=_is_link
        )
        # By a file, so that neither side waits for the other.
        with tempfile.TemporaryFile() as names:
            names.write(b"".join(item.name + b"\n" for item in items))
            names.seek(0)
            with _started(self.top, ("cat-file", "--batch"), names) as git:
                assert git.stdout is not None
                for item in items:
                    data = _blob(git.stdout, item)
                    if data is not None:
                        _put(folder, item, data)

    def _write_module(self, module: _Item, folder: str, is_wanted: Callable[[str, bool], bool]) -> None:
        """Put the files of a submodule below a folder, unless it, or its commit, was not fetched."""
        home = os.path.realpath(os.path.join(self.top, *module.path.split("/")))
        with contextlib.suppress(GitError):
            own = repository(home)
            commit = own.commit(module.name.decode()) if own.top == home else None
            if commit is not None:
                below = os.path.join(folder, *module.path.split("/"))
                own.write(commit, below, lambda path, program: is_wanted(f"{module.path}/{path}", program))

    def _rows(self, commit: str) -> Iterator[_Item]:
        done = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        if done.returncode:
            raise GitError(_words(done.stderr))
        for row in done.stdout.split(b"\0"):
            if not row:
                continue
            head, _, name = row.partition(b"\t")
            mode, kind, item = head.split()
            path = os.fsdecode(name)
            if _is_plain(path):
                yield _Item(mode, kind, item, path)

    def _asked(self, revision: str) -> str | None:
        done = self._run("rev-parse", "--verify", "--quiet", revision)
        return None if done.returncode else done.stdout.decode().strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return _run(self.top, arguments)


def repository(folder: str) -> Repository:
    """The repository that a folder lies in; raises ``GitError``."""
    done = _run(folder, ("rev-parse", "--show-toplevel"))
    if done.returncode:
        raise GitError(_words(done.stderr))
    return Repository(os.path.realpath(os.fsdecode(done.stdout.rstrip(b"\n"))))


def _is_plain(path: str) -> bool:
    """Whether a path leads down and nowhere else; git itself makes no others."""
    return not os.path.isabs(path) and not {"", ".", ".."} & set(path.split("/")) and "\\" not in path


def _is_link(item: _Item) -> bool:
    return item.mode == _LINK


def _lies_apart(module: _Item, rows: Iterable[_Item]) -> bool:
    """Whether nothing else lies at, in or above a submodule, as links of one could lead the files of the other away."""
    own = f"{module.path}/".casefold()
    others = (f"{row.path}/".casefold() for row in rows if row is not module)
    return not any(other.startswith(own) or own.startswith(other) for other in others)


def _put(folder: str, item: _Item, data: bytes) -> None:
    path = os.path.join(folder, *item.path.split("/"))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if _is_link(item):
            with contextlib.suppress(FileExistsError):
                os.symlink(os.fsdecode(data), path)
            return
        mode = 0o700 if item.mode == _PROGRAM else 0o600
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(data)
    except OSError as error:
        raise GitError(f"{item.path} cannot be written: {disk.words(error)}") from None


def _blob(stream: IO[bytes], item: _Item) -> bytes | None:
    """The next file that ``cat-file --batch`` writes; none for one that is larger than any that is read."""
    head = stream.readline().split()
    if len(head) != 3 or head[1] != _BLOB:
        raise GitError(f"git has no content of {item.path} (a partial clone?)")
    size = int(head[2])
    if size <= disk.MOST_BYTES:
        data = stream.read(size)
        stream.read(1)
        return data
    left = size + 1
    while left and (part := stream.read(min(left, _PART))):
        left -= len(part)
    return None


def _run(folder: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    with _started(folder, arguments, subprocess.DEVNULL) as git:
        out, err = git.communicate()
    return subprocess.CompletedProcess(arguments, git.returncode, out, err)


def _started(folder: str, arguments: Sequence[str], stdin: IO[bytes] | int) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _INHERITED} | _SETTINGS
    try:
        return subprocess.Popen(
            ("git", *_OPTIONS, *arguments),
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stdin == subprocess.DEVNULL else subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    except OSError as error:
        raise GitError(f"git cannot be started: {disk.words(error)}") from None


def _words(stderr: bytes) -> str:
    """What git says, on one line."""
    rows = stderr.decode("utf-8", "replace").strip().splitlines() or ["git failed"]
    said = next((row for row in rows if row.startswith(("fatal: ", "error: "))), rows[0])
    return said.removeprefix("fatal: ").removeprefix("error: ")
