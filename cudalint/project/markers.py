"""What searching the bytes of a file shows: whether it can matter at all, and whether something may start there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cudalint.project.blocks import runs_at_once
from cudalint.text.words import Words

_GPU = Words(
    (
        b"torch", b"cuda", b"gpu", b"GPU", b"cupy", b"numba", b"jax", b"tensorflow", b"keras", b"pycuda",
        b"accelerate", b"transformers", b"lightning", b"pytorch_lightning", b"sentence_transformers", b"diffusers",
        b"timm", b"spacy", b"vllm", b"sglang", b"skorch", b"deepspeed", b"torchcodec", b"PyNvVideoCodec", b"trl",
    )
)  # fmt: skip
# Packages that count only where they are imported: their names are words that prose and code use as well.
_PACKAGES = (
    b"bitsandbytes|catboost|clip|ctranslate2|cudf|cugraph|cuml|dask_cudf|decord|easyocr|faiss|faster_whisper|flair|insightface|"
    b"lightgbm|llama_cpp|monai|nvidia|onnxruntime|open_clip|paddle|paddleocr|pyannote|rmm|stable_baselines3|stanza|"
    b"taichi|tensorrt|torch_geometric|triton|ultralytics|warp|whisper|whisperx|xgboost"
)
# A pattern that begins with a word is found much faster than one that begins with a choice.
_IMPORTS = (
    re.compile(rb"import[ \t]+(?:[\w., \t]*,[ \t]*)?(?:%s)\b" % _PACKAGES),
    re.compile(rb"from[ \t]+(?:%s)\b" % _PACKAGES),
)
# What starts something wherever it is mentioned, and what does so where it is called or imported.
_LAUNCHERS = (
    b"ProcessPool", b"ProcessPoolExecutor", b"DataLoader", b"StatefulDataLoader", b"WebLoader", b"start_processes",
    b"forkpty", b"set_start_method", b"init_process_group", b"num_proc", b"notebook_launcher",
    b"CUDA_VISIBLE_DEVICES", b"set_default_device", b"set_default_tensor_type", b"set_memory_growth",
    b"set_visible_devices", b"init_device_mesh", b"process_map", b"WorkerPool", b"p_tqdm", b"DDPStrategy", b"n_jobs",
    b"n_process", b"use_multiprocessing", b"dataloader_num_workers", b"preload_app", b"wsgi_app", b"celery",
    b"uwsgidecorators", b"SubprocVecEnv", b"AsyncVectorEnv", b"SubprocVectorEnv", b"ShmemVectorEnv",
    b"dask.distributed", b"LocalCluster", b"loky", b"uvicorn", b"process_index",
    b"rq", b"huey", b"supersuit", b"sglang", b"ThreadDataLoader", b"DenseDataLoader", b"DataListLoader",
    b"GraphDataLoader", b"from_engine_args", b"make_vec", b"make_vec_env", b"start_multi_process_pool", b"hypercorn",
    b"LocalCUDACluster", b"preexec_fn", b"BaseManager", b"pipeline_def", b"NeighborLoader", b"LinkNeighborLoader",
    b"RandomNodeLoader", b"ShaDowKHopSampler", b"HGTLoader", b"BaseApplication",
)  # fmt: skip
_CALLS = (b"Pool", b"Process", b"Parallel", b"spawn", b"fork", b"Manager", b"LLM")
_THREADS = (b"Thread", b"ThreadPool", b"ThreadPoolExecutor", b"to_thread", b"run_in_executor")
_NAMED_LAUNCH, _CALLED_LAUNCH, _THREAD = Words(_LAUNCHERS), Words(_CALLS), Words(_THREADS)
_STRATEGY = re.compile(rb"ddp_(?:fork|notebook)")
_OF_PROCESSES = (b"Trainer", b"Fabric", b"multiprocessing", b"multiprocess", b"billiard", b"gunicorn")
_PROCESS = Words((*_LAUNCHERS, *_CALLS[:-2], *_THREADS[:3], *_OF_PROCESSES))
_SELECTS = re.compile(rb"\bset_device\b|\bselect_device\b|\.use\(\)")
# A device object at the beginning of a line, or under another name. ``torch.device`` is none.
_DEVICE = re.compile(
    rb"(?:^|[:;])[ \t]*(?:(?:\w+\.)*cuda\.)?[dD]evice\(|\bcuda\.[dD]evice[ \t]*(?:$|[,;)\]}#])|"
    rb"\bimport\b.*\b[dD]evice[ \t]+as\b",
    re.MULTILINE,
)
_RENAMED = re.compile(
    rb"\bcuda[ \t]+as[ \t]+\w+|\bimport[ \t]+cupy[ \t]+as\b|\bfrom[ \t]+torch[ \t]+import\b.*\bcuda\b|"
    rb"=[ \t]*(?:\w+\.)*cuda[ \t]*$",
    re.MULTILINE,
)
_OF_RENAMED = re.compile(rb"(?:^|[:;])[ \t]*[\w.]+\.[dD]evice\(|=[ \t]*\w+\.[dD]evice[ \t]*$", re.MULTILINE)
_CUDA = re.compile(rb"\b(?:cuda|cupy)\b")


def may_matter(data: bytes) -> bool:
    """Whether the file mentions CUDA or processes, so that it is worth a look."""
    return mentions_gpu(data) or _PROCESS.stand_in(data)


def may_launch(data: bytes) -> bool:
    """Whether something that a rule judges may start in the file."""
    if _NAMED_LAUNCH.stand_in(data) or _CALLED_LAUNCH.are_used_in(data):
        return True
    if device_statement(data) or (b"ddp_" in data and _STRATEGY.search(data) is not None):
        return True
    return _THREAD.stand_in(data) and _SELECTS.search(data) is not None


def device_statement(data: bytes) -> bool:
    """Whether a line may be a device object as a statement."""
    if b"evice" not in data or (b"cuda" not in data and b"cupy" not in data):
        return False
    if _CUDA.search(data) is None:
        return False
    return _DEVICE.search(data) is not None or (
        _RENAMED.search(data) is not None and _OF_RENAMED.search(data) is not None
    )


_ACTS = re.compile(
    rb"^([ \t]*)(?![ \t#'\")\]}]).*(?:\bcuda\.\w+\(|\.cuda\(|[\"']cuda\b|"
    rb"\b(?:cupy|cp)\.\w+\(|\bcuda\.gpus\b|\bjax\.devices|"
    rb"\.is_available\(|\bjnp\.\w+\(|\btf\.(?:config|constant|Variable|random|keras\.(?:Sequential|Model))\b|"
    rb"\bset_start_method\(|\benviron.*(?:CUDA|NVML|XLA|MASTER)|\bAccelerator\(|\bimport torch_geometric\b|"
    rb"\bcpp_extension\b|\bautoinit\b|\bset_default_(?:device|tensor_type)\()",
    re.MULTILINE,
)


# A lock, a queue or a pool of the default context settles the start method.
_SETTLES = re.compile(
    rb"^([ \t]*)(?![ \t#'\")\]}]).*\b(?:R?Lock|(?:Joinable|Simple)?Queue|Event|(?:Bounded)?Semaphore|Condition|Barrier|"
    rb"Value|Array|Manager|Pool)\(",
    re.MULTILINE,
)


def acts_at_top(data: bytes) -> bool:
    """Whether a line that runs at the import of a file may do something to the process."""
    patterns = (_ACTS, _SETTLES) if b"multiprocess" in data else (_ACTS,)
    return any(
        not found[1] or runs_at_once(data, found.start(), len(found[1])) is True
        for pattern in patterns
        for found in pattern.finditer(data)
    )


def mentions_gpu(data: bytes) -> bool:
    """Whether the file mentions a GPU framework, or imports a package that may use a GPU."""
    return _GPU.stand_in(data) or any(pattern.search(data) is not None for pattern in _IMPORTS)


_DEVICE_NAME = re.compile(rb"[\"']cuda")
_GIVEN = re.compile(rb"(?:\bto\(|\b[dD]evice\w*\s*[=:(,])\s*f?$")
_NEAR = 80


def places_on_gpu(data: bytes) -> bool:
    """Whether the file puts something on a GPU or chooses one, be it of a framework that another file imports."""
    if b"uda" not in data:
        return False
    if b".cuda(" in data or b"CUDA_VISIBLE_DEVICES" in data:
        return True
    starts = (found.start() for found in _DEVICE_NAME.finditer(data))
    return any(_GIVEN.search(data[max(start - _NEAR, 0) : start]) is not None for start in starts)


_TOP_CALL = re.compile(rb"^(?!(?:def|class|from|import|async)\b|[ \t#'\")\]}])[^#\n]*", re.MULTILINE)
_CALLED = re.compile(rb"(?<![\w.])([A-Za-z_]\w*)(?=\(|\s*$)|\.([A-Za-z_]\w*)(?=\(|\s*$)")
_DEFINED = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_KEEPS = re.compile(rb"\]\s*=[^=]|\.(?:append|add|update|setdefault|insert)\(")
_SPAN = 4_000


@dataclass(frozen=True, slots=True)
class TopCalls:
    """The names that lines of the top level call, and those that they decorate with."""

    called: frozenset[bytes]
    decorating: frozenset[bytes]


def calls_at_top(data: bytes) -> TopCalls:
    """What a file calls when it is imported."""
    called: set[bytes] = set()
    decorating: set[bytes] = set()
    for found in _TOP_CALL.finditer(data):
        line = found.group()
        if line.startswith(b"@"):
            decorating.update(_called_in(line))
        elif b"(" in line:
            called.update(_called_in(line))
    return TopCalls(frozenset(called), frozenset(decorating))


def _called_in(data: bytes) -> Iterator[bytes]:
    return (name for names in _CALLED.findall(data) for name in names if name)


def does_something(data: bytes, calls: TopCalls, on_gpu: frozenset[bytes], *, registers: bool) -> bool:
    """Whether a file defines one of these so that calling it may use a GPU, or as a decorator that keeps what it gets.

    ``on_gpu`` are the functions of libraries that use one. The second matters where the file that decorates
    ``registers`` GPU code.
    """
    for found in _DEFINED.finditer(data):
        name = found[2]
        if name not in calls.called and name not in calls.decorating:
            continue
        body = _body(data, found.end(), len(found[1]))
        uses = mentions_gpu(body) or (bool(on_gpu) and not on_gpu.isdisjoint(_called_in(body)))
        if uses or (registers and name in calls.decorating and _KEEPS.search(body) is not None):
            return True
    return False


def _body(data: bytes, start: int, indent: int) -> bytes:
    """The lines of a definition: those that stand deeper than its first one."""
    end = re.compile(rb"^[ \t]{0,%d}[^ \t\r\n#)]" % indent, re.MULTILINE).search(data, start)
    return data[start : min(end.start() if end is not None else len(data), start + _SPAN)]
