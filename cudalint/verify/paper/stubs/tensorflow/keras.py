"""tensorflow.keras on paper: a layer has weights once its input is known, and weights are tensors."""

from __future__ import annotations

from typing import Any

import paper_driver as driver
import tensorflow as tf
from tensorflow import _np, _plain, _Space, _start


class Input:
    """An input's shape."""

    def __init__(self, shape: Any = None, *_: Any, **__: Any) -> None:
        self.shape = tuple(shape)


class Dense:
    """A dense layer."""

    def __init__(self, units: int, activation: Any = None, input_shape: Any = None, **_: Any) -> None:
        self.units, self.input_shape = units, input_shape
        self.kernel: Any = None

    @property
    def trainable_variables(self) -> list[Any]:
        """Its weights."""
        return [self.kernel] if self.kernel is not None else []

    def build(self, width: int) -> int:
        """Make the weights."""
        if self.kernel is None:
            self.kernel = tf.Variable(_np().full((width, self.units), 0.1, "float32"))
        return self.units

    def __call__(self, x: Any) -> Any:
        array = _np().asarray(_plain(x), "float32")
        self.build(array.shape[-1])
        return tf.Tensor(array @ self.kernel._touch())


class PyDataset:
    """Batches by number, read here or by worker processes."""

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        self.workers, self.use_multiprocessing = workers, use_multiprocessing

    def batches(self) -> Any:
        """Every batch."""
        if not self.use_multiprocessing:
            return [self[i] for i in range(len(self))]  # type: ignore[arg-type, index]
        import multiprocessing

        with multiprocessing.Pool(self.workers, initializer=_hold, initargs=(self,)) as pool:
            jobs = [pool.apply_async(_item, (i,)) for i in range(len(self))]  # type: ignore[arg-type]
            return [job.get() for job in jobs]


_held: list[Any] = []


def _hold(dataset: PyDataset) -> None:
    _held.append(dataset)


def _item(number: int) -> Any:
    return _held[0][number]


class Sequential:
    """Layers one after the other."""

    def __init__(self, layers: Any = ()) -> None:
        self.layers: list[Any] = []
        self.width: Any = None
        for layer in layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """One more."""
        if isinstance(layer, Input):
            self.width = layer.shape[-1]
            return
        if getattr(layer, "input_shape", None):
            self.width = layer.input_shape[-1]
        if self.width is not None and hasattr(layer, "build"):
            self.width = layer.build(self.width)
        self.layers.append(layer)

    def __call__(self, x: Any, training: bool = False) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    @property
    def trainable_variables(self) -> list[Any]:
        """All weights."""
        return [weight for layer in self.layers for weight in getattr(layer, "trainable_variables", [])]

    trainable_weights = variables = weights = trainable_variables

    def compile(self, *_: Any, **__: Any) -> None:
        """Nothing on paper."""

    def fit(self, x: Any, y: Any = None, *_: Any, **__: Any) -> Any:
        """One pass."""
        for batch in x.batches() if isinstance(x, PyDataset) else [(x, y)]:
            self(batch[0])
        return _Space(paper_name="history", history={"loss": [0.1]})

    def predict(self, x: Any, *_: Any, **__: Any) -> Any:
        """numpy out."""
        return self(x).numpy()

    def evaluate(self, x: Any, *_: Any, **__: Any) -> float:
        """A loss."""
        self(x)
        return 0.1

    def get_weights(self) -> list[Any]:
        """numpy weights."""
        return [layer.kernel.numpy() for layer in self.layers]

    def set_weights(self, weights: Any) -> None:
        """From numpy."""
        for layer, weight in zip(self.layers, weights):
            layer.kernel = tf.Variable(weight)


class Optimizer:
    """Any optimizer."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def apply_gradients(self, pairs: Any) -> None:
        """One step."""
        for gradient, variable in pairs:
            variable.assign_add(gradient * -0.1)


class MeanSquaredError:
    """A loss."""

    def __call__(self, y: Any, x: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.Tensor(_plain(x)) - _plain(y)))


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing on paper."""


def _clear(*_: Any) -> None:
    _start()


layers = _Space(paper_name="tensorflow.keras.layers", Dense=Dense, Input=Input)
models = _Space(paper_name="tensorflow.keras.models", Sequential=Sequential)
mixed_precision = _Space(paper_name="tensorflow.keras.mixed_precision", set_global_policy=_nothing)
utils = _Space(paper_name="tensorflow.keras.utils", set_random_seed=_nothing, PyDataset=PyDataset, Sequence=PyDataset)
losses = _Space(paper_name="tensorflow.keras.losses", MeanSquaredError=MeanSquaredError)
optimizers = _Space(paper_name="tensorflow.keras.optimizers", Adam=Optimizer, SGD=Optimizer)
backend = _Space(paper_name="tensorflow.keras.backend", clear_session=_nothing)
__getattr__ = driver.lazy("tensorflow.keras")
