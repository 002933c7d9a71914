"""The store of bytes and the secret that signs it, on real folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import secret as secrets_
from cudalint.secret import Malformed, Unsafe, secret
from cudalint.store import Store, clear

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "cache"), KEY)


def entries(store: Store) -> list[Path]:
    return sorted(path for path in Path(store.folder).glob("*/*/*") if path.is_file())


def test_what_was_put_is_got_by_its_kind_and_key(store: Store) -> None:
    store.put("modules", "a", b"one")
    store.put("results", "a", b"two")
    store.put("modules", "b", b"")
    again = Store(store.folder, KEY)
    assert (again.get("modules", "a"), again.get("results", "a"), again.get("modules", "b")) == (b"one", b"two", b"")
    assert again.get("modules", "c") is None
    assert again.problem is None


def test_the_last_put_counts(store: Store) -> None:
    store.put("modules", "a", b"one")
    store.put("modules", "a", b"two")
    assert store.get("modules", "a") == b"two"
    assert len(entries(store)) == 1


def test_the_folder_says_what_it_is_and_git_ignores_it(store: Store) -> None:
    store.put("modules", "a", b"one")
    folder = Path(store.folder)
    assert folder.joinpath("CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    subprocess.run(["git", "init", "-q"], cwd=folder.parent, check=True)
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, cwd=folder.parent, capture_output=True, check=True).stdout == b""


def test_a_folder_that_holds_other_things_is_not_made_invisible_to_git(tmp_path: Path) -> None:
    tmp_path.joinpath("mine.py").write_text("x = 1\n")
    store = Store(str(tmp_path), KEY)
    store.put("modules", "a", b"one")
    assert store.get("modules", "a") == b"one"
    assert not tmp_path.joinpath(".gitignore").exists()
    assert clear(store.folder) == 1
    assert os.listdir(tmp_path) == ["mine.py"]


def test_only_the_owner_reads_an_entry(store: Store) -> None:
    store.put("modules", "a", b"one")
    assert [path.stat().st_mode & 0o777 for path in entries(store)] == [0o600]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("spoil", [truncated, emptied, flipped, longer, a_folder, a_pipe, endless])
def test_a_spoilt_entry_is_absent(store: Store, spoil: Callable[[Path], None]) -> None:
    store.put("modules", "a", b"one")
    (path,) = entries(store)
    spoil(path)
    assert store.get("modules", "a") is None


def test_entries_of_another_secret_are_absent_and_in_nobodys_way(store: Store) -> None:
    other = Store(store.folder, OTHER_KEY)
    store.put("modules", "a", b"one")
    assert other.get("modules", "a") is None
    other.put("modules", "a", b"two")
    assert (store.get("modules", "a"), other.get("modules", "a")) == (b"one", b"two")


@pytest.mark.parametrize(("kind", "key"), [("modules", "b"), ("results", "a")])
def test_a_signed_entry_counts_only_under_its_own_name(store: Store, kind: str, key: str) -> None:
    store.put("modules", "a", b"one")
    (first,) = entries(store)
    store.put(kind, key, b"two")
    (second,) = (path for path in entries(store) if path != first)
    second.write_bytes(first.read_bytes())
    assert store.get(kind, key) is None


def test_a_file_where_the_folder_should_be_ends_writing_and_nothing_else(tmp_path: Path) -> None:
    tmp_path.joinpath("cache").write_text("mine")
    store = Store(str(tmp_path / "cache"), KEY)
    store.put("modules", "a", b"one")
    store.put("modules", "b", b"one")
    assert store.get("modules", "a") is None
    assert store.problem is not None
    assert store.problem.startswith(f"the cache {store.folder} cannot be used: ")
    store.tidy()
    assert clear(store.folder) == 0
    assert tmp_path.joinpath("cache").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that nobody writes to")
def test_a_read_only_file_system_is_a_problem_and_no_error() -> None:
    store = Store("/proc/cudalint", KEY)
    store.put("modules", "a", b"one")
    assert store.get("modules", "a") is None
    assert store.problem is not None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_a_problem_and_no_error(store: Store) -> None:
    store.put("modules", "a", b"one")
    for path in (Path(store.folder), *Path(store.folder).glob("*"), *Path(store.folder).glob("*/*")):
        if path.is_dir():
            path.chmod(0o500)
    again = Store(store.folder, KEY)
    assert again.get("modules", "a") == b"one"
    again.put("modules", "a", b"two")
    assert again.problem is not None
    assert again.get("modules", "a") == b"one"


def test_a_full_disk_leaves_what_was_there(store: Store) -> None:
    store.put("modules", "a", b"one")
    program = f"""
import resource
from cudalint.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store = Store({store.folder!r}, {KEY!r})
store.put("modules", "a", b"x" * 100_000)
print(store.problem)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "cannot be used" in done.stdout
    assert store.get("modules", "a") == b"one"
    assert len(entries(store)) == 1


@pytest.mark.parametrize("place", ["", "modules"])
def test_links_are_not_followed_out_of_the_cache(tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "cache" / place
    folder.parent.mkdir(exist_ok=True)
    (tmp_path / "cache" if not place else folder).symlink_to(elsewhere)
    store = Store(str(tmp_path / "cache"), KEY)
    store.put("modules", "a", b"one")
    assert list(elsewhere.iterdir()) == []
    assert store.problem is not None


def aged(path: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(path, (then, then))


def test_what_was_long_not_used_goes(store: Store) -> None:
    store.put("modules", "old", b"one")
    (old,) = entries(store)
    aged(old, 31)
    store.put("modules", "new", b"two")
    store.tidy()
    assert store.get("modules", "old") is None
    assert store.get("modules", "new") == b"two"


def test_use_keeps_an_entry(store: Store) -> None:
    store.put("modules", "a", b"one")
    (path,) = entries(store)
    aged(path, 29)
    assert store.get("modules", "a") == b"one"
    assert time.time() - path.stat().st_mtime < 3_600


def test_beyond_the_bound_the_least_recently_used_go(store: Store) -> None:
    store.most_bytes = 10_000
    for number in range(20):
        store.put("modules", str(number), bytes(1_000))
        (fresh,) = (path for path in entries(store) if time.time() - path.stat().st_mtime < 1_800)
        aged(fresh, 0.9 - number / 100)
    store.tidy()
    left = [number for number in range(20) if store.get("modules", str(number)) is not None]
    assert left == list(range(13, 20))
    assert sum(path.stat().st_size for path in entries(store)) <= 8_000


def test_tidying_looks_at_the_folder_once_a_day(store: Store) -> None:
    store.put("modules", "a", b"one")
    store.tidy()
    (path,) = entries(store)
    aged(path, 40)
    store.put("modules", "b", b"two")
    store.tidy()
    assert path.exists()
    aged(Path(store.folder, ".tidied"), 2)
    store.tidy()
    assert not path.exists()


def test_a_torn_write_is_cleared_away(store: Store) -> None:
    store.put("modules", "a", b"one")
    (path,) = entries(store)
    left = path.with_name(f"{path.name}.1-2.tmp")
    left.write_bytes(b"half")
    aged(left, 1)
    store.tidy()
    assert not left.exists()
    assert path.exists()


def test_clearing_removes_entries_of_all_users_and_nothing_else(store: Store) -> None:
    store.put("modules", "a", b"one")
    Store(store.folder, OTHER_KEY).put("results", "a", b"two")
    assert clear(store.folder) == 2
    assert not Path(store.folder).exists()
    store = Store(store.folder, KEY)
    store.put("modules", "a", b"one")
    notes = entries(store)[0].with_name("notes.txt")
    notes.write_text("mine")
    assert clear(store.folder) == 1
    assert notes.read_text() == "mine"


def test_programs_at_the_same_time_see_whole_entries_or_none(store: Store) -> None:
    program = f"""
from cudalint.store import Store
store = Store({store.folder!r}, {KEY!r})
for number in range(300):
    key = str(number % 7)
    store.put("modules", key, (key * 5000).encode())
    found = store.get("modules", key)
    assert found == (key * 5000).encode(), found
assert store.problem is None, store.problem
"""
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    assert len(entries(store)) == 7


# -- the secret ---------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(secrets_.VARIABLE, raising=False)
    return tmp_path


posix = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes")
KEY_FILE = "Library/Caches/cudalint/key" if sys.platform == "darwin" else ".cache/cudalint/key"


@posix
def test_a_key_is_made_once_and_for_its_owner_alone(home: Path) -> None:
    first = secret()
    assert len(first) == 32
    assert secret() == first
    assert home.joinpath(KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert home.joinpath(KEY_FILE).parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(home.joinpath(KEY_FILE).parent) == ["key"]


@posix
def test_a_home_that_a_group_shares_is_good_enough_for_a_folder_of_ones_own(home: Path) -> None:
    home.chmod(0o775)
    assert secret() == secret()


@posix
def test_two_users_have_two_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = secret()
    monkeypatch.setenv("HOME", str(home / "other"))
    home.joinpath("other").mkdir()
    assert secret() != first


@pytest.mark.skipif(sys.platform != "linux", reason="where the variable counts")
def test_the_cache_home_is_where_it_is_said_to_be(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "somewhere"))
    secret()
    assert home.joinpath("somewhere", "cudalint", "key").is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    secret()
    assert home.joinpath(KEY_FILE).is_file()


def test_runners_share_a_key_that_they_are_given(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(secrets_.VARIABLE, "ab" * 32)
    assert secret() == b"\xab" * 32
    assert list(home.iterdir()) == []
    monkeypatch.setenv(secrets_.VARIABLE, "")
    assert secret() != b"\xab" * 32


@pytest.mark.parametrize("given", ["abcd", "zz" * 32, "ab" * 65, "correct horse"])
def test_what_is_no_key_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(secrets_.VARIABLE, given)
    with pytest.raises(Malformed, match="must be 32 to 128 hexadecimal digits") as refused:
        secret()
    assert given not in str(refused.value)


def readable(path: Path) -> None:
    path.chmod(0o644)


def writable_by_the_group(path: Path) -> None:
    path.chmod(0o620)


def in_a_shared_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def short(path: Path) -> None:
    path.write_bytes(b"short")


def linked(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def not_a_file(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@posix
@pytest.mark.parametrize("spoil", [readable, writable_by_the_group, in_a_shared_folder, short, linked, not_a_file])
def test_a_key_that_others_may_know_is_none(home: Path, spoil: Callable[[Path], None]) -> None:
    secret()
    spoil(home.joinpath(KEY_FILE))
    with pytest.raises(Unsafe):
        secret()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("given_away", [KEY_FILE, str(Path(KEY_FILE).parent)])
def test_a_key_of_another_user_is_none(home: Path, given_away: str) -> None:
    secret()
    os.chown(home / given_away, 12_345, 12_345)
    with pytest.raises(Unsafe, match="belongs to another user"):
        secret()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_no_key_in_the_home_of_another(home: Path) -> None:
    os.chown(home, 12_345, 12_345)
    with pytest.raises(Unsafe, match="belongs to another user"):
        secret()
    assert list(home.iterdir()) == []


@posix
def test_without_a_home_there_is_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "nowhere")
    with pytest.raises(Unsafe, match="no home directory"):
        secret()


@posix
def test_programs_that_start_at_the_same_time_have_one_key(home: Path) -> None:
    program = "from cudalint.secret import secret; print(secret().hex())"
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(4)]
    keys = {one.communicate(timeout=60)[0].strip() for one in running}
    assert len(keys) == 1
    assert re.fullmatch(rb"[0-9a-f]{64}", keys.pop())
    assert os.listdir(home.joinpath(KEY_FILE).parent) == ["key"]
