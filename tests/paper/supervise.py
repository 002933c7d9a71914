"""The process between the runner and a program: reaps every orphan, notes every death, leaves nobody behind.

Called as `python -I -S supervise.py LIMIT RESULT STDOUT STDERR COMMAND...`; writes RESULT as JSON.
"""

import ctypes
import json
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def descendants():
    """Every living process below this one."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as handle:
                    parents.setdefault(int(handle.read().rpartition(b")")[2].split()[1]), []).append(int(name))
            except OSError:
                continue
    found, queue = [], [os.getpid()]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def start(command, out, err):
    """Start the program as the leader of its own session."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for path, target in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)
    return pid


def reap(deaths, until, stop):
    """Collect the dead until `stop(pid)` says enough, nobody is left, or the time is over."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid:
            deaths[pid] = os.waitstatus_to_exitcode(status)
            if stop(pid):
                return True
        elif time.monotonic() > until:
            return False
        else:
            time.sleep(0.004)


def is_tracker(pid):
    """A resource tracker ends by itself once its users are dead, and removes what they left in /dev/shm."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return b"resource_tracker" in handle.read()
    except OSError:
        return False


def sweep(deaths):
    """Kill and reap everything that is left."""
    killed = []
    for turn in range(200):
        living = descendants()
        if not living:
            break
        for pid in living:
            if turn < 10 and is_tracker(pid):
                continue
            try:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            except ProcessLookupError:
                pass
        reap(deaths, time.monotonic() + 0.05, lambda pid: False)
    return killed


def main():
    """Run one program to its end or its limit."""
    limit, result, out, err, *command = sys.argv[1:]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    deaths = {}

    def give_up(*_):
        sweep(deaths)
        os._exit(1)

    signal.signal(signal.SIGTERM, give_up)
    began = time.monotonic()
    main_pid = start(command, out, err)
    ended = reap(deaths, began + float(limit), lambda pid: pid == main_pid)
    seconds = time.monotonic() - began
    hung = not (ended and main_pid in deaths)
    orphans = []
    if not hung:  # children that outlive their main process get a moment to end by themselves
        reap(deaths, time.monotonic() + 0.5, lambda pid: False)
        orphans = descendants()
    killed = sweep(deaths)
    report = {
        "main": main_pid,
        "code": None if hung else deaths[main_pid],
        "seconds": seconds,
        "deaths": {pid: code for pid, code in deaths.items() if pid not in killed},
        "orphans": orphans,
    }
    with open(result, "w") as handle:
        json.dump(report, handle)


main()
