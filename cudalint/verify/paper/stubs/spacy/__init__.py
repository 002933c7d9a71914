"""spaCy on paper: a pipeline that runs on the GPU once one is required, in processes if it is asked to."""

from __future__ import annotations

import multiprocessing
from typing import Any, Iterator

import paper_driver as driver

_gpu = [False]
_TRAINED = {"ner", "tagger", "parser", "senter", "spancat", "textcat", "textcat_multilabel", "tok2vec", "transformer"}


def require_gpu(gpu_id: int = 0) -> bool:
    """From now on arrays are cupy's."""
    import cupy

    cupy.cuda.Device(gpu_id).use()
    cupy.zeros(1)
    _gpu[0] = True
    return True


def prefer_gpu(gpu_id: int = 0) -> bool:
    """The same where there is a GPU."""
    return require_gpu(gpu_id)


def _run(text: str, trained: bool) -> str:
    if _gpu[0] and trained:
        import cupy

        cupy.ones(len(text) or 1).sum().item()
    return text


def _work(texts: list[str], trained: bool, pipe: Any) -> None:
    try:
        pipe.send([_run(text, trained) for text in texts])
    except Exception as error:  # noqa: BLE001  spaCy sends every error of a worker to its parent
        pipe.send(f"{type(error).__name__}: {error}")


class Language:
    """A pipeline: its trained components compute on the GPU, the others do not."""

    def __init__(self, trained: bool) -> None:
        self._trained = trained

    def add_pipe(self, factory_name: str, **_: Any) -> None:
        """One component more."""
        self._trained = self._trained or factory_name in _TRAINED

    def initialize(self, *_: Any) -> None:
        """Weights of the components."""
        _run("", self._trained)

    def __call__(self, text: str) -> str:
        return _run(text, self._trained)

    def pipe(self, texts: Any, n_process: int = 1, batch_size: int = 1000, **_: Any) -> Iterator[str]:
        """Many texts."""
        listed = list(texts)
        if n_process == 1:
            yield from (_run(text, self._trained) for text in listed)
            return
        ends, processes = [], []
        for number in range(n_process):
            mine, theirs = multiprocessing.Pipe(False)
            process = multiprocessing.Process(target=_work, args=(listed[number::n_process], self._trained, theirs), daemon=True)
            process.start()
            ends.append(mine)
            processes.append(process)
        for end in ends:
            found = end.recv()
            if isinstance(found, str):
                raise ValueError(f"[E871] Error encountered in nlp.pipe with multiprocessing:\n\n{found}")
            yield from found
        for process in processes:
            process.join()


def blank(name: str) -> Language:
    """An empty pipeline."""
    return Language(False)


def load(name: str, **_: Any) -> Language:
    """A trained pipeline."""
    return Language(True)


__getattr__ = driver.lazy("spacy")
