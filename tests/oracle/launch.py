"""Axis 3: launchers that run a callable on items."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.text import Draft, Lines, block

POOLS = (
    "pool_map",
    "pool_imap",
    "pool_imap_unordered",
    "pool_starmap",
    "pool_map_async",
    "pool_apply_async",
    "pool_apply",
    "pool_starmap_async",
    "pool_imap_chunks",
    "pool_callback",
)
EXECUTORS = ("executor_map", "executor_submit", "executor_as_completed", "executor_wait", "executor_asyncio")
THREADS = ("thread_map", "thread_submit")
JOBLIB = (
    "joblib_loky",
    "joblib_default",
    "joblib_multiprocessing",
    "joblib_threading",
    "joblib_config",
    "joblib_generator",
    "joblib_prefer",
    "joblib_sharedmem",
)
JOBLIB_THREADS = ("joblib_threading", "joblib_prefer", "joblib_sharedmem")
PROCESSES = ("process", "process_keywords", "process_subclass")
RANKS = ("mp_spawn", "start_processes")
FORKS = ("os_fork", "os_fork_inline")
LAUNCHERS = (*POOLS, *EXECUTORS, *THREADS, *JOBLIB, *PROCESSES, *RANKS, *FORKS, "thread", "loader")
RETURNS = (*POOLS, *EXECUTORS, *THREADS, *JOBLIB)
OPENED = (*POOLS, *EXECUTORS, *THREADS, *JOBLIB)
MADE_BEFORE = (*POOLS, *EXECUTORS)


@dataclass(frozen=True)
class Job:
    """What is launched: the callable, its items, and with what."""

    ctx: str
    ctx_chosen: bool
    function: str
    items: str
    size: int
    with_block: bool
    method: str
    initargs: str | None = None
    respawn: bool = False
    queue: str | None = None
    puts: Lines = field(default_factory=list)
    puts_before: bool = True
    gets: bool = False
    pipe: bool = False


@dataclass
class Plan:
    """The stages of a launch; `opener` is an expression for a `with` block."""

    create: Lines = field(default_factory=list)
    opener: str | None = None
    use: Lines = field(default_factory=list)
    close: Lines = field(default_factory=list)


def render_launch(draft: Draft, launcher: str, job: Job) -> Plan:
    """The stages of the launch, imports and definitions written into the draft."""
    if launcher in POOLS:
        return _pool(launcher, job)
    if launcher in EXECUTORS or launcher in THREADS:
        return _executor(draft, launcher, job)
    if launcher in JOBLIB:
        return _joblib(draft, launcher, job)
    if launcher in RANKS:
        return _ranks(draft, launcher, job)
    if launcher in FORKS:
        return _fork(draft, launcher, job)
    return _thread(draft, job) if launcher == "thread" else _processes(draft, launcher, job)


def _opened(expression: str, name: str, use: Lines, close: Lines, with_block: bool) -> Plan:
    if with_block:
        return Plan(opener=f"{expression} as {name}", use=use)
    return Plan(create=[f"{name} = {expression}"], use=use, close=close)


# -- pools ---------------------------------------------------------------------------------------------------


_POOL_USES = {
    "pool_map": ["results = pool.map({f}, {items})"],
    "pool_imap": ["results = list(pool.imap({f}, {items}))"],
    "pool_imap_unordered": ["results = list(pool.imap_unordered({f}, {items}))"],
    "pool_starmap": ["results = pool.starmap({f}, [(item,) for item in {items}])"],
    "pool_map_async": ["results = pool.map_async({f}, {items}).get()"],
    "pool_apply_async": [
        "pending = [pool.apply_async({f}, (item,)) for item in {items}]",
        "results = [one.get() for one in pending]",
    ],
    "pool_apply": ["results = [pool.apply({f}, (item,)) for item in {items}]"],
    "pool_starmap_async": ["results = pool.starmap_async({f}, [(item,) for item in {items}]).get()"],
    "pool_imap_chunks": ["results = list(pool.imap({f}, {items}, chunksize=2))"],
    "pool_callback": [
        "results = []",
        "pending = [pool.apply_async({f}, (item,), callback=results.append) for item in {items}]",
        "for one in pending:",
        "    one.get()",
    ],
}


def _filled(lines: Lines, job: Job) -> Lines:
    return [line.replace("{f}", job.function).replace("{items}", job.items) for line in lines]


def _pool(launcher: str, job: Job) -> Plan:
    options = f", initializer=set_up, initargs=({job.initargs},)" if job.initargs else ""
    options += ", maxtasksperchild=1" if job.respawn else ""
    use = _filled(_POOL_USES[launcher], job)
    return _opened(f"{job.ctx}.Pool({job.size}{options})", "pool", use, ["pool.close()", "pool.join()"], job.with_block)


# -- executors -----------------------------------------------------------------------------------------------


_EXECUTOR_USES = {
    "map": ["results = list(pool.map({f}, {items}))"],
    "submit": [
        "futures = [pool.submit({f}, item) for item in {items}]",
        "results = [future.result() for future in futures]",
    ],
    "as_completed": [
        "futures = [pool.submit({f}, item) for item in {items}]",
        "results = [future.result() for future in as_completed(futures)]",
    ],
    "wait": [
        "futures = [pool.submit({f}, item) for item in {items}]",
        "results = [future.result() for future in wait(futures).done]",
    ],
    "asyncio": [
        "async def gather():",
        "    loop = asyncio.get_running_loop()",
        "    return await asyncio.gather(*[loop.run_in_executor(pool, {f}, item) for item in {items}])",
        "",
        "results = asyncio.run(gather())",
    ],
}


def _executor(draft: Draft, launcher: str, job: Job) -> Plan:
    kind, _, use = launcher.partition("_")
    name = "ThreadPoolExecutor" if kind == "thread" else "ProcessPoolExecutor"
    names = f"{name}, {use}" if use in ("as_completed", "wait") else name
    if use == "asyncio":
        draft.imports.add("import asyncio")
    draft.imports.add(f"from concurrent.futures import {names}")
    options = f", mp_context={job.ctx}" if job.ctx_chosen and kind != "thread" else ""
    options += f", initializer=set_up, initargs=({job.initargs},)" if job.initargs else ""
    expression = f"{name}(max_workers={job.size}{options})"
    return _opened(expression, "pool", _filled(_EXECUTOR_USES[use], job), ["pool.shutdown()"], job.with_block)


# -- joblib --------------------------------------------------------------------------------------------------


_JOBLIB_OPTIONS = {
    "loky": ', backend="loky"',
    "multiprocessing": ', backend="multiprocessing"',
    "threading": ', backend="threading"',
    "generator": ', return_as="generator"',
    "prefer": ', prefer="threads"',
    "sharedmem": ', require="sharedmem"',
}


def _joblib(draft: Draft, launcher: str, job: Job) -> Plan:
    backend = launcher.removeprefix("joblib_")
    names = "Parallel, delayed, parallel_config" if backend == "config" else "Parallel, delayed"
    draft.imports.add(f"from joblib import {names}")
    options = _JOBLIB_OPTIONS.get(backend, "")
    made = f"Parallel(n_jobs={job.size}{options})"
    tasks = f"(delayed({job.function})(item) for item in {job.items})"
    if backend == "config":
        use = block('with parallel_config(backend="multiprocessing"):', [f"results = {made}{tasks}"])
        return Plan(use=use)
    use = [f"results = list(parallel{tasks})" if backend == "generator" else f"results = parallel{tasks}"]
    return Plan(opener=f"{made} as parallel", use=use) if job.with_block else Plan([f"parallel = {made}"], use=use)


# -- processes -----------------------------------------------------------------------------------------------


def _processes(draft: Draft, launcher: str, job: Job) -> Plan:
    create = [_shared(job)] if job.queue else []
    argument = "queue" if job.queue else "item"
    if launcher == "process_subclass":
        started = f"Runner({argument})"
        _subclass(draft, job)
    elif launcher == "process_keywords":
        started = f'{job.ctx}.Process(target={job.function}, kwargs={{"{argument}": {argument}}})'
    else:
        started = f"{job.ctx}.Process(target={job.function}, args=({argument},))"
    source = f"range({job.size})" if job.queue else job.items
    create.append(f"processes = [{started} for {'_' if job.queue else 'item'} in {source}]")
    start = block("for process in processes:", ["process.start()"])
    join = block("for process in processes:", ["process.join()"])
    puts = block("for _ in processes:", job.puts) if job.puts else []
    use = [*puts, *start, *join] if job.puts_before else [*start, *puts, *join]
    get = "there.recv()" if job.pipe else "queue.get()"
    return Plan(create=create, use=[*use, *([f"results = [{get} for _ in processes]"] if job.gets else [])])


def _shared(job: Job) -> str:
    """The queue, or the pipe whose one end the worker gets: `queue` is the worker's, `there` the parent's."""
    if not job.pipe:
        return f"queue = {job.queue}.Queue()"
    ends = "there, queue" if job.gets else "queue, there"
    return f"{ends} = {job.queue}.Pipe(duplex=False)"


def _subclass(draft: Draft, job: Job) -> None:
    init = block("def __init__(self, item):", ["super().__init__()", "self.item = item"])
    run = block("def run(self):", [f"{job.function}(self.item)"])
    draft.define(*block(f"class Runner({job.ctx}.Process):", [*init, "", *run]))


def _fork(draft: Draft, launcher: str, job: Job) -> Plan:
    draft.imports.add("import os")
    named = [f"work = {job.function}"] if job.function.startswith("lambda") else []
    function = "work" if named else job.function
    body = [f"{function}(item)", "os._exit(0)"]
    if launcher == "os_fork_inline":
        loop = block(f"for item in {job.items}:", [*block("if os.fork() == 0:", body), "os.wait()"])
        return Plan(use=[*named, *loop])
    child = block("if pid == 0:", body)
    loop = block(f"for item in {job.items}:", ["pid = os.fork()", *child, "os.waitpid(pid, 0)"])
    return Plan(use=[*named, *loop])


def _thread(draft: Draft, job: Job) -> Plan:
    draft.imports.add("import threading")
    create = [f"threads = [threading.Thread(target={job.function}, args=(item,)) for item in {job.items}]"]
    start = block("for thread in threads:", ["thread.start()"])
    return Plan(create=create, use=[*start, *block("for thread in threads:", ["thread.join()"])])


def _ranks(draft: Draft, launcher: str, job: Job) -> Plan:
    draft.imports.add("import torch.multiprocessing as mp")
    extra = f', start_method="{job.method}"' if launcher == "start_processes" and job.method != "default" else ""
    name = "spawn" if launcher == "mp_spawn" else "start_processes"
    return Plan(use=[f"mp.{name}({job.function}, args=({job.items},), nprocs={job.size}{extra})"])
