"""State that torch and NumPy keep for a process."""

from __future__ import annotations

from oracle.inherited import State

_TORCH, _NUMPY = "import torch", "import numpy as np"

LIBRARIES = {
    "grad_disabled": State(
        ("torch.set_grad_enabled(False)",), "torch.is_grad_enabled()", ("set_grad_enabled",), (_TORCH,)
    ),
    "grad_of_a_result": State(
        ("torch.set_grad_enabled(False)",),
        '(torch.ones(1, device="cpu", requires_grad=True) * 2).requires_grad',
        ("set_grad_enabled",),
        (_TORCH,),
    ),
    "no_grad_around": State((), "torch.is_grad_enabled()", ("no_grad",), (_TORCH,), around="with torch.no_grad():"),
    "inference_mode_around": State(
        (), "torch.is_grad_enabled()", ("inference_mode",), (_TORCH,), around="with torch.inference_mode():"
    ),
    "default_dtype": State(
        ("torch.set_default_dtype(torch.float64)",),
        'torch.ones(1, device="cpu").dtype',
        ("set_default_dtype",),
        (_TORCH,),
    ),
    "default_tensor_type": State(
        ("torch.set_default_tensor_type(torch.DoubleTensor)",),
        "torch.get_default_dtype()",
        ("set_default_tensor_type",),
        (_TORCH,),
    ),
    "default_device": State(
        ('torch.set_default_device("cuda")',), "torch.ones(1).device.type", ("set_default_device",), (_TORCH,)
    ),
    "cudnn_benchmark": State(
        ("torch.backends.cudnn.benchmark = True",),
        "torch.backends.cudnn.benchmark",
        ("cudnn.benchmark", "torch.backends"),
        (_TORCH,),
    ),
    "tf32": State(
        ("torch.backends.cuda.matmul.allow_tf32 = True",),
        "torch.backends.cuda.matmul.allow_tf32",
        ("allow_tf32", "torch.backends"),
        (_TORCH,),
    ),
    "matmul_precision": State(
        ('torch.set_float32_matmul_precision("high")',),
        "torch.get_float32_matmul_precision()",
        ("set_float32_matmul_precision",),
        (_TORCH,),
    ),
    "deterministic": State(
        ("torch.use_deterministic_algorithms(True)",),
        "torch.are_deterministic_algorithms_enabled()",
        ("use_deterministic_algorithms",),
        (_TORCH,),
    ),
    "anomaly_detection": State(
        ("torch.autograd.set_detect_anomaly(True)",),
        "torch.is_anomaly_enabled()",
        ("set_detect_anomaly",),
        (_TORCH,),
    ),
    "threads": State(
        ("torch.set_num_threads(3)",), "torch.get_num_threads()", ("set_num_threads",), (_TORCH,), loader=False
    ),
    "torch_seed": State(
        ("torch.manual_seed(7)",), "torch.initial_seed()", ("manual_seed", "seed"), (_TORCH,), loader=False
    ),
    "torch_draw": State(
        ("torch.manual_seed(7)",),
        'torch.rand(1, device="cpu").item()',
        ("manual_seed", "seed"),
        (_TORCH,),
        once=True,
        loader=False,
    ),
    "numpy_seed": State(
        ("np.random.seed(7)",), "float(np.random.rand())", ("seed",), (_NUMPY,), once=True, loader=False
    ),
    "numpy_seed_of_the_module": State(
        ("np.random.rand()",),
        "float(np.random.rand())",
        ("seed", "numpy.random.rand"),
        (_NUMPY,),
        top=("np.random.seed(7)",),
        once=True,
        loader=False,
    ),
    "numpy_errors": State(('np.seterr(divide="raise")',), 'np.geterr()["divide"]', ("seterr",), (_NUMPY,)),
    "numpy_errors_around": State(
        (), 'np.geterr()["divide"]', ("errstate",), (_NUMPY,), around='with np.errstate(divide="raise"):'
    ),
    "numpy_print": State(
        ("np.set_printoptions(precision=2)",), "str(np.array([1 / 3]))", ("set_printoptions",), (_NUMPY,)
    ),
}
