"""Every measured behaviour that paper CUDA covers, as a tiny program with the outcome that hardware showed."""

# ruff: noqa: E501  one row, one line: a table is read down its columns

from __future__ import annotations

from paper.behaviour import Row

REINIT = "Cannot re-initialize CUDA in forked subprocess"
INIT_ERROR = "CUDA error: initialization error"
DUPLICATE = "Duplicate GPU detected"
T = "import os, sys, time, torch\nimport multiprocessing as mp\n"
W = T + "def work(x):\n    return (torch.ones(2).cuda() * x).sum().item()\n"
MAIN = "if __name__ == '__main__':\n"


def main(*lines: str) -> str:
    """The main guard and its lines."""
    return MAIN + "".join(f"    {line}\n" for line in lines)


POOL = ("with mp.Pool(2) as pool:", "    print(pool.map(work, [1, 2]))")
INIT = "torch.ones(1).cuda()"
PROCESS = ("p = mp.Process(target=work, args=(1,))", "p.start(); p.join()")
EXECUTOR = (
    "from concurrent.futures import ProcessPoolExecutor",
    "with ProcessPoolExecutor(2) as ex: print(list(ex.map(work, [1, 2])))",
)
JOBLIB = "from joblib import Parallel, delayed, parallel_config\n"

FORK = [
    Row("init-pool", "crash", W + main(INIT, *POOL), REINIT),
    Row("init-executor", "crash", W + main(INIT, *EXECUTOR), REINIT),
    Row("init-joblib-multiprocessing", "crash", JOBLIB + W + main(INIT, "Parallel(2, backend='multiprocessing')(delayed(work)(i) for i in range(2))"), REINIT),
    Row("init-joblib-parallel-config", "crash", JOBLIB + W + main(INIT, "with parallel_config(backend='multiprocessing', n_jobs=2):", "    Parallel()(delayed(work)(i) for i in range(2))"), REINIT),
    Row("init-start-processes-fork", "crash", W + main(INIT, "import torch.multiprocessing as tmp", "tmp.start_processes(work, nprocs=2, start_method='fork')"), REINIT),
    Row("init-process", "child-death", W + main(INIT, *PROCESS), REINIT),
    Row("init-torch-process", "child-death", W.replace("import multiprocessing", "import torch.multiprocessing") + main(INIT, *PROCESS), REINIT),
    Row("init-process-subclass", "child-death", T + "class P(mp.Process):\n    def run(self):\n        torch.ones(1).cuda()\n" + main(INIT, "p = P(); p.start(); p.join()"), REINIT),
    Row("init-os-fork", "child-death", W + main(INIT, "pid = os.fork()", "if pid == 0:", "    work(1)", "    os._exit(0)", "os.waitpid(pid, 0)"), REINIT),
    Row("init-fork-in-thread", "child-death", W + main(INIT, "import threading", "def go():", "    p = mp.Process(target=work, args=(1,)); p.start(); p.join()", "t = threading.Thread(target=go); t.start(); t.join()"), REINIT),
    Row("available-pool", "crash", W + main("torch.cuda.is_available()", "print('init', torch.cuda.is_initialized())", *POOL), r"init False[\s\S]*" + REINIT),
    Row("available-nvml", "ok", W + main("torch.cuda.is_available()", *POOL), r"\[2.0, 4.0\]", env={"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}),
    Row("harmless-queries", "ok", W + main("torch.cuda.device_count(), torch.device('cuda'), torch.manual_seed(0), torch.cuda.manual_seed_all(0), torch.cuda.memory_allocated(), torch.cuda.empty_cache()", "torch.set_default_device('cuda')", *POOL), r"\[2.0, 4.0\]"),
    Row("pinned-loader-then-pool", "crash", W + main("from torch.utils.data import DataLoader, TensorDataset", "for b in DataLoader(TensorDataset(torch.ones(4, 2)), pin_memory=True): pass", *POOL), REINIT),
    Row("available-is-no-guard", "crash", W.replace("    return", "    print(f'seen {torch.cuda.is_available()}')\n    return") + main(INIT, *POOL), r"seen True[\s\S]*" + REINIT),
    Row("initialized-is-a-guard", "ok", T + "def work(x):\n    return torch.ones(2).cuda().sum().item() if torch.cuda.is_initialized() else -x\n" + main(INIT, *POOL), r"\[-1, -2\]"),
    Row("cpu-only-worker", "ok", T + "def work(x):\n    torch.manual_seed(x)\n    return (torch.ones(2) * x).sum().item()\n" + main(INIT, *POOL), r"\[2.0, 4.0\]"),
    Row("inherited-shape", "ok", T + "G = torch.ones(3).cuda()\ndef work(x):\n    return G.shape, G.device, G.dtype, G.is_cuda, G.numel()\n" + main(*POOL), "cuda"),
    *[
        Row(f"inherited-{name}", "crash", T + f"G = torch.ones(3).cuda()\ndef work(x):\n    return {text}\n" + main(*POOL), INIT_ERROR)
        for name, text in {"cpu": "G.cpu()", "sum": "G.sum().item()", "item": "float(G[0])", "str": "str(G)"}.items()
    ],
    Row("inherited-closure", "child-death", T + main("x = torch.ones(3).cuda()", "def inner(): print(x.sum())", "p = mp.Process(target=inner); p.start(); p.join()"), INIT_ERROR),
    Row("initializer-pool", "hang", T + "def start():\n    torch.ones(1).cuda()\n" + main(INIT, "with mp.Pool(2, initializer=start) as pool: print(pool.map(abs, [1]))"), REINIT),
    Row("initializer-executor", "crash", T + "def start():\n    torch.ones(1).cuda()\n" + main(INIT, "from concurrent.futures import ProcessPoolExecutor", "with ProcessPoolExecutor(2, initializer=start) as ex: print(list(ex.map(abs, [1])))"), "BrokenProcessPool"),
    Row("pool-before-init", "ok", W + main("with mp.Pool(2) as pool:", "    torch.ones(1).cuda()", "    print(pool.map(work, [1, 2]))"), r"\[2.0, 4.0\]"),
    Row("pool-before-init-respawned", "crash", W + main("with mp.Pool(1, maxtasksperchild=1) as pool:", "    torch.ones(1).cuda()", "    print([pool.apply(work, (i,)) for i in range(3)])"), REINIT),
    Row("workers-alone", "ok", W + main(*POOL), r"\[2.0, 4.0\]"),
    Row("fallback-in-worker", "ok", T + "def work(x):\n    try:\n        return str(torch.ones(1).cuda().device)\n    except RuntimeError:\n        return 'cpu'\n" + main(INIT, *POOL), r"\['cpu', 'cpu'\]"),
]  # fmt: skip

_LIBRARIES = {
    "torch": ("import torch", "torch.cuda.is_available()", "torch.ones(1).cuda()", "torch.ones(1).cuda()"),
    "cupy": ("import cupy as cp", "cp.cuda.is_available()", "cp.ones(1)", "cp.ones(1)"),
    "numba": ("from numba import cuda", "cuda.is_available()", "cuda.device_array(1)", "cuda.device_array(1)"),
    "jax": ("import jax, jax.numpy as jnp", "jax.devices()", "jnp.ones(1)", ""),
}
_SYMPTOMS = {
    "torch": "CUDA driver initialization failed|CUDA error: initialization error",
    "cupy": "cudaErrorInitializationError",
    "numba": "Call to cuInit results in CUDA_ERROR_NOT_INITIALIZED",
}


def _cross() -> list[Row]:
    found = []
    for first, (setup, query, init, _) in _LIBRARIES.items():
        for second, (setup2, _, _, use) in _LIBRARIES.items():
            if first == second or not use:
                continue
            for kind, text in (("query", query), ("init", init)):
                program = f"import multiprocessing as mp\n{setup}\n{setup2}\ndef work(x):\n    {use}\n    return x\n"
                found.append(
                    Row(f"cross-{first}-{kind}-{second}", "crash", program + main(text, *POOL), _SYMPTOMS[second])
                )
    for first in ("torch", "cupy", "numba"):
        setup, query, init, _ = _LIBRARIES[first]
        for kind, text in (("query", query), ("init", init)):
            program = f"import multiprocessing as mp\n{setup}\nimport jax\ndef work(x):\n    return jax.numpy.ones(1).device.platform\n"
            found.append(Row(f"cross-{first}-{kind}-jax", "ok", program + main(text, *POOL), r"\['cpu', 'cpu'\]"))
    return found


CP = "import multiprocessing as mp\nimport cupy as cp\ndef work(x):\n    return float((cp.ones(2) * x).sum())\n"
NB = "import multiprocessing as mp\nimport numpy as np\nfrom numba import cuda\ndef work(x):\n    return cuda.to_device(np.ones(2)).copy_to_host()\n"
JX = "import multiprocessing as mp\nimport jax, jax.numpy as jnp\ndef work(x):\n    return float(jnp.ones(2).sum())\n"
TF = "import multiprocessing as mp\nimport tensorflow as tf\ndef work(x):\n    return float(tf.reduce_sum(tf.constant([1.0, 2.0])))\n"
DS = "import torch, datasets\nd = datasets.Dataset.from_dict({'x': [1, 2, 3, 4]})\ndef work(row):\n    return {'y': torch.ones(1).cuda().item()}\n"
NOTE = "import torch, accelerate\ndef work():\n    print(torch.ones(1).cuda().item())\n"
PL = (
    "import torch, lightning\nclass Net(lightning.LightningModule):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layer = torch.nn.Linear(2, 1)\n    def training_step(self, batch, i):\n        return self.layer(batch).mean()\n"
)
PL_FIT = "lightning.Trainer(accelerator='gpu', devices=2, strategy='{}', logger=False).fit(Net(), [torch.ones(2, 2)])"

FRAMEWORKS = [
    Row("cupy-init-pool", "crash", CP + main("cp.ones(1)", *POOL), "cudaErrorInitializationError"),
    Row("cupy-available-pool", "crash", CP + main("cp.cuda.is_available()", *POOL), "cudaErrorInitializationError"),
    *_cross(),
    Row("numba-init-pool", "crash", NB + main("cuda.to_device(np.ones(1))", *POOL), "CUDA initialized before forking"),
    Row("numba-available-pool", "crash", NB + main("cuda.is_available()", *POOL), "CUDA initialized before forking"),
    Row("jax-ran-pool", "hang", JX + main("jnp.ones(1)", *POOL), "os.fork"),
    Row("jax-import-pool", "ok", JX + main(*POOL), r"\[2.0, 2.0\]"),
    Row("tf-ran-pool", "hang", TF + main("work(1)", *POOL), "CUDA_ERROR_NOT_INITIALIZED"),
    Row("tf-ran-executor", "crash", TF + main("work(1)", *EXECUTOR), "BrokenProcessPool"),
    Row("tf-ran-process", "child-death", TF + main("work(1)", *PROCESS)),
    Row("tf-listed-pool", "crash", TF + main("tf.config.list_physical_devices('GPU')", *POOL), "CUDA_ERROR_NOT_INITIALIZED"),
    Row("tf-ran-numpy-worker", "ok", TF + main("work(1)", "with mp.Pool(2) as pool: print(pool.map(abs, [-1]))"), r"\[1\]"),
    Row("datasets-map", "crash", DS + main(INIT, "d.map(work, num_proc=2)"), REINIT),
    Row("datasets-map-one", "crash", DS + main(INIT, "d.map(work, num_proc=1)"), REINIT),
    Row("datasets-filter", "crash", DS + main(INIT, "d.filter(lambda r: work(r)['y'] > 0, num_proc=2)"), "RuntimeError"),
    Row("datasets-model", "crash", DS + main("m = torch.nn.Linear(1, 1).cuda()", "d.map(lambda r: {'y': m(torch.ones(1).cuda()).item()}, num_proc=2)"), "RuntimeError"),
    Row("datasets-mp-spawn-is-not-enough", "crash", "import multiprocessing\n" + DS + main("multiprocessing.set_start_method('spawn')", INIT, "d.map(work, num_proc=2)"), REINIT),
    Row("datasets-multiprocess-spawn", "ok", DS + main("import multiprocess; multiprocess.set_start_method('spawn')", INIT, "print(d.map(work, num_proc=2)['y'])"), r"\[1.0, 1.0"),
    Row("notebook-launcher", "crash", NOTE + main(INIT, "accelerate.notebook_launcher(work, num_processes=2)"), "RuntimeError", gpus=2),
    Row("notebook-launcher-clean", "ok", NOTE + main("accelerate.notebook_launcher(work, num_processes=2)"), "1.0", gpus=2),
    Row("lightning-ddp-fork", "crash", PL + main(INIT, PL_FIT.format("ddp_fork")), "RuntimeError", gpus=2),
    Row("lightning-ddp-notebook", "crash", PL + main(INIT, PL_FIT.format("ddp_notebook")), "RuntimeError", gpus=2),
    Row("lightning-ddp-spawn", "ok", PL + main(INIT, PL_FIT.format("ddp_spawn")), gpus=2),
]  # fmt: skip

_CONTEXTS = ("ctx = mp.get_context('{}')", "with ctx.Pool(2) as pool: print(pool.map(work, [1, 2]))")


def _context(method: str) -> tuple[str, ...]:
    return tuple(line.format(method) for line in _CONTEXTS)


SPAWN = [
    *[
        Row(f"{method}-{name}", "ok", program + main(init, *_context(method)), r"\[")
        for method in ("spawn", "forkserver")
        for name, program, init in (("torch", W, INIT), ("cupy", CP, "cp.ones(1)"), ("tf", TF, "tf.config.experimental.set_memory_growth(tf.config.list_physical_devices('GPU')[0], True); work(1)"))
    ],
    Row("forkserver-preload-torch", "ok", W + main("mp.set_forkserver_preload(['torch'])", INIT, *_context("forkserver")), r"\[2.0, 4.0\]"),
    Row("forkserver-preload-geometric", "crash", W + main("mp.set_forkserver_preload(['torch_geometric'])", *_context("forkserver")), INIT_ERROR),
    *[
        Row(f"set-start-method-{name}", "ok", W.replace("multiprocessing as mp", f"{module} as mp") + main("mp.set_start_method('spawn')", INIT, *use))
        for name, module, use in (("pool", "multiprocessing", POOL), ("torch-pool", "torch.multiprocessing", POOL), ("process", "multiprocessing", PROCESS), ("executor", "multiprocessing", EXECUTOR))
    ],
    Row("subprocess", "ok", T + main(INIT, "import subprocess", "subprocess.run([sys.executable, '-c', 'import torch; print(torch.ones(1).cuda())'], check=True)"), "cuda:0"),
    Row("threads-safe-but-on-device-0", "ok", T + "from concurrent.futures import ThreadPoolExecutor\n" + main("torch.cuda.set_device(1)", "with ThreadPoolExecutor(1) as ex: print(ex.submit(lambda: torch.ones(1).cuda().device).result())"), "cuda:0", gpus=2),
    Row("joblib-threading", "ok", JOBLIB + W + main(INIT, "print(Parallel(2, backend='threading')(delayed(work)(i) for i in range(2)))"), r"\[0.0, 2.0\]"),
    Row("spawn-module-level-no-guard", "hang", T + "mp.set_start_method('spawn')\ndef work(x):\n    return x\n" + main("with mp.Pool(1) as pool: pool.map(work, [1])"), "context has already been set"),
    Row("spawn-pool-module-level", "hang", T + "def work(x):\n    return x\nwith mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(work, [1]))\n", "bootstrapping"),
    Row("start-method-too-late", "crash", T + main("q = mp.Queue()", "mp.set_start_method('spawn')"), "context has already been set"),
    Row("start-method-forced", "ok", T + main("q = mp.Queue()", "mp.set_start_method('spawn', force=True)")),
    Row("spawn-lambda", "crash", T + main("mp.get_context('spawn').Process(target=lambda: 1).start()"), "Can't pickle"),
    Row("spawn-local-function", "crash", T + main("def go():", "    def inner(): pass", "    mp.get_context('spawn').Process(target=inner).start()", "go()"), "Can't (?:pickle|get) local object"),
    Row("spawn-global-of-main", "child-death", T + "def work(x):\n    print(N)\n" + main("N = 3", "p = mp.get_context('spawn').Process(target=work, args=(1,)); p.start(); p.join()"), "NameError"),
    Row("spawn-module-model", "ok", T + "model = torch.nn.Linear(1, 1).cuda()\ndef work(x):\n    return model(torch.ones(1).cuda()).shape\n" + main(*_context("spawn")), "Size"),
    Row("spawn-fork-lock", "crash", T + "def work(lock):\n    pass\n" + main("lock = mp.Lock()", "mp.get_context('spawn').Process(target=work, args=(lock,)).start()"), "SemLock created in a fork context"),
    Row("spawn-loader-no-workers", "crash", T + main("torch.utils.data.DataLoader([1], multiprocessing_context='spawn')"), "ValueError"),
    Row("spawn-visible-devices-too-late", "ok", T + "torch.cuda.is_available()\ndef work(x):\n    os.environ['CUDA_VISIBLE_DEVICES'] = str(x)\n    return str(torch.cuda.get_device_properties(0).uuid)[-1]\n" + main("print(mp.get_context('spawn').Pool(1).map(work, [1]))"), r"\['0'\]", gpus=2),
]  # fmt: skip

LOKY = JOBLIB + W
VISIBLE = "def place(x):\n    os.environ['CUDA_VISIBLE_DEVICES'] = str(x)\n    return str(torch.cuda.get_device_properties(0).uuid)[-1]\n"
MEMORY = "def work(x):\n    torch.ones(1).cuda(); time.sleep(0.3)\n    free, total = torch.cuda.mem_get_info(); return (total - free) >> 20\n"
JOB = [
    Row("loky-after-init", "ok", LOKY + main(INIT, "print(Parallel(2)(delayed(work)(i) for i in range(2)))"), r"\[0.0, 2.0\]"),
    Row("loky-context-each", "ok", JOBLIB + T + MEMORY + main("print('most', max(Parallel(4)(delayed(work)(i) for i in range(4))))"), "most 24[78]"),
    Row("loky-argument", "ok", JOBLIB + T + main("x = torch.ones(3).cuda()", "print(Parallel(2)(delayed(float)(x.sum()) for i in range(2)))"), r"\[3.0, 3.0\]"),
    Row("loky-capture-and-result", "ok", JOBLIB + T + main("x = torch.ones(3).cuda()", "print(Parallel(2)(delayed(lambda i: x * i)(i) for i in range(2)))"), "cuda:0"),
    Row("joblib-multiprocessing-argument", "hang", JOBLIB + T + "def work(x):\n    return 1\n" + main("x = torch.ones(3).cuda()", "Parallel(2, backend='multiprocessing')(delayed(work)(x) for i in range(2))"), REINIT),
    *[
        Row(f"loky-{name}", "crash", JOBLIB + T + "def work(x):\n    return 1\n" + main(f"s = torch.cuda.{name}()", "Parallel(2)(delayed(work)(s) for i in range(2))"), "PicklingError")
        for name in ("Stream", "Event")
    ],
    Row("loky-cupy", "ok", JOBLIB + "import cupy as cp\ndef work(x):\n    return float(x.sum())\n" + main("x = cp.ones(3)", "print(Parallel(2)(delayed(work)(x) for i in range(2)))"), r"\[3.0, 3.0\]"),
    Row("numba-array-spawn", "crash", "import multiprocessing as mp\nfrom numba import cuda\ndef work(x):\n    return 1\n" + main("mp.get_context('spawn').Pool(1).map(work, [cuda.device_array(1)])"), "no default __reduce__"),
    Row("visible-devices-reused-loky", "ok", JOBLIB + T + VISIBLE + main("print(Parallel(1, backend='loky')(delayed(place)(i) for i in (0,)), Parallel(2)(delayed(place)(i) for i in (1, 1, 0, 0)))"), r"\['0'\]", gpus=2),
    Row("visible-devices-reused-pool", "ok", T + VISIBLE + main("with mp.Pool(1) as pool: print(pool.map(place, [1, 0, 0]))"), r"\['1', '1', '1'\]", gpus=2),
    Row("tf-two-fork", "ok", TF + main(*POOL)),
    Row("tf-two-spawn", "ok", TF + main(*_context("spawn"))),
    Row("tf-four-fork", "hang", TF + main("with mp.Pool(4) as pool: print(pool.map(work, range(4), chunksize=1))")),
    Row("tf-four-spawn", "ok", TF + main("with mp.get_context('spawn').Pool(4) as pool: print(pool.map(work, range(4), chunksize=1))")),
    Row("tf-eight-loky", "crash", JOBLIB + TF + main("Parallel(8)(delayed(work)(i) for i in range(8))"), "out of memory"),
    Row("tf-growth", "ok", TF.replace("    return", "    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices('GPU')[0], True)\n    return") + main("with mp.Pool(8) as pool: print(pool.map(work, range(8), chunksize=1))")),
    Row("tf-parent-then-children", "crash", TF + main("work(1)", *_context("spawn")), "out of memory"),
    Row("jax-two-spawn-beside-parent", "ok", JX + main("work(1)", *_context("spawn"))),
    Row("jax-eight-spawn", "crash", JX.replace("    return", "    import time; v = float(jnp.ones(2).sum()); time.sleep(1.5)\n    return") + main("with mp.get_context('spawn').Pool(8) as pool: print(pool.map(work, range(8), chunksize=1))"), "RESOURCE_EXHAUSTED"),
    Row("jax-eight-no-preallocation", "ok", JX + main("with mp.get_context('spawn').Pool(8) as pool: print(pool.map(work, range(8), chunksize=1))"), env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
]  # fmt: skip

UUID = "print('gpu', str(torch.cuda.get_device_properties(0).uuid)[-1])"
VISIBLE_ROWS = [
    Row("visible-after-import", "ok", T + f"os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n{UUID}\n", "gpu 1", gpus=2),
    Row("visible-after-available", "ok", T + f"torch.cuda.is_available()\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nprint('count', torch.cuda.device_count())\n{UUID}\ntorch.ones(1, device='cuda:1')\n", r"count 1\ngpu 0", gpus=2),
    Row("visible-after-init", "ok", T + f"torch.cuda.init()\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n{UUID}\n", "gpu 0", gpus=2),
    Row("tf-growth-too-late", "crash", TF + "work(1)\ntf.config.experimental.set_memory_growth(tf.config.list_physical_devices('GPU')[0], True)\n", "RuntimeError"),
    Row("tf-visible-too-late", "crash", TF + "work(1)\ntf.config.set_visible_devices([], 'GPU')\n", "RuntimeError"),
]  # fmt: skip

TAKE = (
    T
    + "from functools import partial\ndef work(x):\n    return float(x.sum())\nclass Job:\n    def __init__(self):\n        self.model = torch.nn.Linear(2, 1).cuda()\n    def run(self, x):\n        return float(self.model(torch.ones(2).cuda()).sum())\ndef apply(model, x):\n    return float(model(torch.ones(2).cuda()).sum())\n"
)
X = "x = torch.ones(3).cuda()"
WARNING = "Producer process has been terminated before all shared CUDA tensors released"
GET = "def work(q):\n    print('sum', q.get().sum().item())\n"
VALUES = [
    Row("argument-pool-fork", "hang", TAKE + main(X, "with mp.Pool(1) as pool: print(pool.map(work, [x]))"), REINIT),
    Row("bound-method-pool-fork", "hang", TAKE + main("j = Job()", "with mp.Pool(1) as pool: print(pool.map(j.run, [1]))"), REINIT),
    Row("partial-pool-fork", "hang", TAKE + main("m = torch.nn.Linear(2, 1).cuda()", "with mp.Pool(1) as pool: print(pool.map(partial(apply, m), [1]))"), REINIT),
    Row("argument-pool-spawn", "ok", TAKE + main(X, "with mp.get_context('spawn').Pool(1) as pool: print(pool.map(work, [x]))"), WARNING),
    Row("partial-pool-spawn", "ok", TAKE + main("m = torch.nn.Linear(2, 1).cuda()", "with mp.get_context('spawn').Pool(1) as pool: print(pool.map(partial(apply, m), [1]))")),
    Row("argument-executor-fork", "crash", TAKE + main(X, "from concurrent.futures import ProcessPoolExecutor", "with ProcessPoolExecutor(1) as ex: print(ex.submit(work, x).result())"), "BrokenProcessPool|" + REINIT),
    Row("argument-executor-spawn", "ok", TAKE + main(X, "from concurrent.futures import ProcessPoolExecutor", "with ProcessPoolExecutor(1, mp_context=mp.get_context('spawn')) as ex: print(ex.submit(work, x).result())"), "3.0"),
    Row("argument-process-fork", "child-death", TAKE + main(X, "p = mp.Process(target=work, args=(x,)); p.start(); p.join()"), INIT_ERROR),
    Row("argument-process-spawn", "ok", TAKE + main(X, "p = mp.get_context('spawn').Process(target=work, args=(x,)); p.start(); p.join()")),
    Row("queue-child-before", "ok", T + GET + main("q = mp.Queue(); p = mp.Process(target=work, args=(q,)); p.start()", "q.put(torch.ones(3).cuda()); p.join()"), "sum 3.0"),
    Row("queue-child-after", "child-death", T + GET + main("q = mp.Queue()", X, "p = mp.Process(target=work, args=(q,)); p.start(); q.put(x); p.join()"), REINIT),
    Row("pipe-child-after", "child-death", T + "def work(c):\n    print(c.recv().sum())\n" + main("a, b = mp.Pipe()", X, "p = mp.Process(target=work, args=(b,)); p.start(); a.send(x); p.join()"), REINIT),
    Row("queue-spawn", "ok", T + GET + main("ctx = mp.get_context('spawn'); q = ctx.Queue()", X, "p = ctx.Process(target=work, args=(q,)); p.start(); q.put(x); p.join()"), "sum 3.0"),
    Row("queue-producer-gone", "crash", T + "def work(q):\n    q.put(torch.ones(3).cuda())\n" + main("ctx = mp.get_context('spawn'); q = ctx.Queue()", "p = ctx.Process(target=work, args=(q,)); p.start(); p.join()", "print(q.get())"), "invalid resource handle"),
    Row("share-memory-process-fork", "child-death", TAKE + main("m = torch.nn.Linear(2, 1).cuda(); m.share_memory()", "p = mp.Process(target=apply, args=(m, 1)); p.start(); p.join()"), REINIT),
    Row("share-memory-process-spawn", "ok", TAKE + main("m = torch.nn.Linear(2, 1).cuda(); m.share_memory()", "p = mp.get_context('spawn').Process(target=apply, args=(m, 1)); p.start(); p.join()")),
    Row("result-pool-fork", "ok", T + "def work(x):\n    return torch.ones(3).cuda() * x\n" + main("with mp.Pool(1) as pool: print(pool.map(work, [2]))"), "cuda:0"),
    Row("result-pool-spawn", "ok", T + "def work(x):\n    return torch.ones(3).cuda() * x\n" + main(INIT, "with mp.get_context('spawn').Pool(1) as pool: print(pool.map(work, [2]))"), "cuda:0"),
]  # fmt: skip

LD = (
    T
    + "from torch.utils.data import DataLoader, Dataset, TensorDataset\nclass D(Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, i):\n        return torch.ones(2).cuda() * i\n"
)
CPU = "t = TensorDataset(torch.arange(8.0))"
NET = "class D(Dataset):\n    def __init__(self):\n        self.net = torch.nn.Linear(2, 1).cuda()\n    def __len__(self):\n        return 4\n    def __getitem__(self, i):\n        return self.net(torch.ones(2).cuda()).detach().cpu()\n"
HOLD = "t = TensorDataset(torch.arange(8.0).cuda())"
LOADER = [
    Row("standard-pattern", "ok", LD + main(CPU, "for e in range(2):", "    for (b,) in DataLoader(t, num_workers=2, pin_memory=True, shuffle=True): b = b.cuda()", "print('done')"), "done"),
    Row("getitem-parent-init", "crash", LD + main(INIT, "for b in DataLoader(D(), num_workers=1): pass"), r"Caught RuntimeError in DataLoader worker process 0[\s\S]*" + REINIT),
    Row("getitem-pin-memory", "crash", LD + main("for b in DataLoader(D(), num_workers=1, pin_memory=True): pass"), REINIT),
    Row("collate-parent-init", "crash", LD + "def collate(b):\n    return torch.stack([x[0] for x in b]).cuda()\n" + main(CPU, INIT, "for b in DataLoader(t, num_workers=1, collate_fn=collate): pass"), REINIT),
    Row("worker-init-parent-init", "crash", LD + "def start(i):\n    torch.cuda.init()\n" + main(CPU, INIT, "for b in DataLoader(t, num_workers=1, worker_init_fn=start): pass"), REINIT),
    Row("getitem-one-epoch", "ok", LD + main("for b in DataLoader(D(), num_workers=1): print(b.device)"), "cuda:0"),
    Row("getitem-two-epochs", "crash", LD + main("for e in range(2):", "    for b in DataLoader(D(), num_workers=1): pass", "    print('epoch', e)"), r"epoch 0[\s\S]*" + REINIT, "epoch 1"),
    Row("getitem-persistent", "ok", LD + main("d = DataLoader(D(), num_workers=1, persistent_workers=True)", "for e in range(2):", "    for b in d: pass", "    print('epoch', e)"), "epoch 1"),
    Row("getitem-spawn-context", "ok", LD + main(INIT, "for b in DataLoader(D(), num_workers=1, multiprocessing_context='spawn'): print(b.device)"), "cuda:0"),
    Row("getitem-spawn-method", "ok", LD + main("mp.set_start_method('spawn')", INIT, "for b in DataLoader(D(), num_workers=1): print(b.device)"), "cuda:0"),
    Row("resident-tensors", "crash", LD + main(HOLD, "for b in DataLoader(t, num_workers=1): pass"), INIT_ERROR),
    Row("resident-model", "crash", LD + NET + main("for b in DataLoader(D(), num_workers=1): pass"), f"{INIT_ERROR}|{REINIT}"),
    Row("resident-spawn", "ok", LD + main(HOLD, "for e in range(2):", "    for b in DataLoader(t, num_workers=1, multiprocessing_context='spawn'): pass", "print('done')"), "done"),
    Row("resident-no-workers", "ok", LD + main(HOLD, "for b in DataLoader(t): pass")),
    Row("resident-no-workers-pinned", "crash", LD + main(HOLD, "for b in DataLoader(t, pin_memory=True): pass"), "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"),
    Row("pin-in-getitem", "crash", LD.replace(".cuda() * i", ".pin_memory()") + main(INIT, "for b in DataLoader(D(), num_workers=1): pass"), INIT_ERROR),
    Row("default-device-workers", "crash", LD + main("t = list(range(4))", "torch.set_default_device('cuda')", "for b in DataLoader(t, num_workers=1): pass"), REINIT),
    Row("default-device-shuffle", "crash", LD + main("t = list(range(4))", "torch.set_default_device('cuda')", "for b in DataLoader(t, shuffle=True): pass"), "Expected a 'cuda' device type for generator but found 'cpu'"),
    Row("default-tensor-type-shuffle", "crash", LD + main("t = list(range(4))", "torch.set_default_tensor_type(torch.cuda.FloatTensor)", "for b in DataLoader(t, shuffle=True): pass"), "Expected a 'cuda' device type"),
    Row("manual-seed-in-worker", "ok", LD + "def start(i):\n    torch.cuda.manual_seed_all(i)\n" + main(CPU, INIT, "for b in DataLoader(t, num_workers=1, worker_init_fn=start): pass")),
    Row("daemonic-loader-worker", "crash", LD.replace("return torch.ones(2).cuda() * i", "mp.Pool(1)") + main("for b in DataLoader(D(), num_workers=1): pass"), "daemonic processes are not allowed to have children"),
    Row("daemonic-pool-worker", "crash", T + "def work(x):\n    p = mp.Process(target=abs, args=(1,)); p.start(); p.join()\n" + main(*POOL), "daemonic processes are not allowed to have children"),
    Row("executor-worker-may", "ok", T + "def work(x):\n    p = mp.Process(target=abs, args=(1,)); p.start(); p.join()\n" + main(*EXECUTOR)),
]  # fmt: skip

DI = "import os, torch, torch.distributed as dist, torch.multiprocessing as tmp\ndef work(rank):\n    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29500')\n"
GO = main("tmp.spawn(work, nprocs=2)", "print('done')")
NCCL = "dist.init_process_group('nccl', rank=rank, world_size=2)"


def ranks(*lines: str, go: str = GO) -> str:
    """Two ranks that run some lines."""
    return DI + "".join(f"    {line}\n" for line in lines) + go


SET, REDUCE, SHOW = "torch.cuda.set_device(rank)", "dist.all_reduce(x)", "print('on', torch.cuda.current_device(), x)"
DISTRIBUTED = [
    Row("init-then-set-device", "ok", ranks(NCCL, SET, "x = torch.ones(1).cuda()", REDUCE, SHOW), r"tensor\(\[2.\], device='cuda:1'\)", gpus=2),
    Row("never-set-device", "crash", ranks(NCCL, "x = torch.ones(1).cuda()", REDUCE), DUPLICATE, gpus=2),
    Row("ddp-never-set-device", "crash", ranks(NCCL, "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1).cuda())"), DUPLICATE, gpus=2),
    Row("objects-before-set-device", "crash", ranks(NCCL, "dist.all_gather_object([None, None], rank)"), DUPLICATE, gpus=2),
    Row("object-list-before-set-device", "crash", ranks(NCCL, "dist.broadcast_object_list([rank])"), DUPLICATE, gpus=2),
    Row("barrier-before-set-device", "ok", ranks(NCCL, "dist.barrier()"), "Guessing device ID based on global rank. This can cause a hang", gpus=2),
    Row("explicit-devices", "ok", ranks(NCCL, "x = torch.ones(1, device=f'cuda:{rank}')", REDUCE, "print(x)"), r"\[2.\], device='cuda:1'", gpus=2),
    Row("ddp-device-ids", "ok", ranks(NCCL, "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1).to(rank), device_ids=[rank])"), gpus=2),
    Row("cuda-before-set-device", "ok", ranks("torch.ones(1).cuda()", SET, NCCL, "x = torch.ones(1).cuda()", REDUCE, "free, total = torch.cuda.mem_get_info(0)", "print('zero', (total - free) >> 20)", "dist.barrier()"), "zero 12[34]", gpus=2),
    Row("device-id-does-not-select", "crash", ranks("dist.init_process_group('nccl', rank=rank, world_size=2, device_id=torch.device('cuda', rank))", "x = torch.ones(1, device='cuda')", REDUCE), "Attempt to perform collective on tensor not on device passed to init_process_group", gpus=2),
    Row("all-set-device-0", "crash", ranks("torch.cuda.set_device(0)", NCCL, "x = torch.ones(1).cuda()", REDUCE), DUPLICATE, gpus=2),
    Row("device-mesh", "ok", ranks("os.environ.update(RANK=str(rank), WORLD_SIZE='2')", "dist.init_device_mesh('cuda', (2,))", "x = torch.ones(1).cuda()", REDUCE, SHOW), "on 1", gpus=2),
    Row("accelerator-in-rank", "ok", ranks("os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE='2')", "import accelerate", "print(accelerate.Accelerator().device, torch.cuda.is_initialized(), dist.get_backend(), torch.cuda.current_device())"), "cuda:1 True nccl 1", gpus=2),
    Row("pipeline-default", "ok", "import torch, transformers\nprint(transformers.pipeline('x').device, torch.cuda.is_initialized())\n", "cuda:0 True"),
    Row("gloo", "ok", ranks("dist.init_process_group('gloo', rank=rank, world_size=2)", "x = torch.ones(1).cuda()", REDUCE, "dist.barrier()", "free, total = torch.cuda.mem_get_info(0)", "print('zero', (total - free) >> 20)", "dist.barrier()"), "zero 12[34]", gpus=2),
    Row("no-master-addr", "crash", ranks("dist.init_process_group('nccl', rank=rank, world_size=2)").replace("MASTER_ADDR='127.0.0.1', MASTER_PORT='29500'", ""), "ValueError.*MASTER_ADDR expected, but not set", gpus=2),
    Row("spawn-after-parent-init", "ok", ranks(SET, NCCL, "x = torch.ones(1).cuda()", REDUCE, go=main(INIT, "tmp.spawn(work, nprocs=2)", "print('done')")), "done", gpus=2),
    Row("device-statement", "ok", "import torch\ntorch.cuda.device(1)\nprint(torch.ones(1).cuda().device)\n", "cuda:0", gpus=2),
]  # fmt: skip

_LOKY2 = "def f(i):\n    return float(torch.randn(10, device='cuda').sum())\n"
BLOCKS = [
    Row("block-cuda-in-loky", "ok", JOBLIB + T + _LOKY2 + main("Parallel(4)(delayed(f)(i) for i in range(4))")),
    Row("block-cpu-only-loky", "ok", JOBLIB + T + main("d = torch.randn(10, device='cuda').cpu()", "print(len(Parallel(2)(delayed(lambda a, i: a * 2)(d, i) for i in range(2))))"), "2"),
    Row("block-init-in-worker-init", "crash", LD + "def start(i):\n    os.environ['CUDA_VISIBLE_DEVICES'] = str(i % torch.cuda.device_count())\n    torch.cuda.init()\n" + main(CPU, "for b in DataLoader(t, num_workers=2, pin_memory=True, worker_init_fn=start): pass"), REINIT),
    Row("block-cuda-dataset-pinned", "crash", LD + main("d = [torch.tensor([1.0]).cuda() for _ in range(4)]", "for b in DataLoader(d, batch_size=2, num_workers=0, pin_memory=True): pass"), "cannot pin 'torch.cuda.FloatTensor'"),
    Row("block-tf-visible-in-pool", "crash", TF + main("n = len(tf.config.list_physical_devices('GPU'))", "with mp.Pool(n) as pool: print(pool.map(work, range(n)))"), "CUDA_ERROR_NOT_INITIALIZED", gpus=4),
    Row("block-cupy-loky", "ok", JOBLIB + CP + main("print(Parallel(2)(delayed(work)(i) for i in range(2)))"), r"\[0.0, 2.0\]"),
    Row("block-set-device-without-master", "crash", ranks(SET, NCCL).replace("MASTER_ADDR='127.0.0.1', MASTER_PORT='29500'", ""), "MASTER_ADDR expected, but not set", gpus=2),
]  # fmt: skip

ROWS = [*FORK, *FRAMEWORKS, *SPAWN, *JOB, *VISIBLE_ROWS, *VALUES, *LOADER, *DISTRIBUTED, *BLOCKS]

NOT_COVERED = {
    "gunicorn --preload with a module-level CUDA model": "servers are not run on paper; the fork itself is covered by init-os-fork",
    "celery prefork with a module-level CUDA model": "brokers are not run on paper; billiard forks as init-process does",
    "torchrun without LOCAL_RANK": "torchrun is not modelled; the ranks behave as never-set-device",
    "forkserver that preloads a module of the program": "needs a second file; forkserver-preload-geometric shows the same",
    "loky does not follow set_start_method": "loky starts fresh interpreters in any case: loky-after-init",
    "12 s for 1 GiB through loky": "seconds are not modelled, only that large host copies are slow",
    "837 MiB with cuBLAS, 26 GB of contexts on 32 cores": "sizes are those measured; 32 workers are too many for CI",
    "Queue: right values by luck after the producer's exit": "paper always reports the usual error",
    "TensorFlow: four forked workers may fail or hang": "paper always hangs",
    "TensorFlow worker in a Pool worker's Process (daemonic)": "covered without TensorFlow: daemonic-pool-worker",
    "torch.compile(...)(...) itself": "hung or aborted when measured alone; paper runs the function as it is",
    "CPython 3.14's forkserver preloading main": "not measured",
    "import of libraries that are not stubbed": "peft, timm, torchvision and the like: paper has no such package",
}
