"""Repairs that would break another path: no GPU, several GPUs in a text, a library that does not listen."""

from __future__ import annotations

import pytest
from test_fixes_places import repair, text_of

from cudalint.finding import Applicability

GUARDED = """
    import os

    import torch
    import torch.distributed as dist


    def main():
        local_rank = int(os.environ["LOCAL_RANK"])
        {asked}
        dist.init_process_group({backend})
        if {condition}:
            torch.cuda.set_device(local_rank)
        dist.destroy_process_group()


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("backend", ['"nccl" if has_gpu else "gloo"', "", '"nccl"'])
def test_the_condition_of_a_choice_is_not_lost(backend: str) -> None:
    asked = "has_gpu = torch.cuda.is_available()"
    before = text_of(GUARDED.format(backend=backend, condition="has_gpu", asked=asked))
    after, *_ = repair(before, "CUD501")
    assert "pass" not in after
    choice = after.index("torch.cuda.set_device(")
    assert choice < after.index("init_process_group")
    assert after[:choice].rstrip().endswith("if has_gpu:")


def test_a_choice_that_is_added_is_left_out_without_a_gpu() -> None:
    chosen = 'if has_gpu:\n            torch.cuda.set_device(local_rank)\n            print("on a GPU")'
    before = text_of(GUARDED.format(backend="", condition="has_gpu", asked="has_gpu = torch.cuda.is_available()"))
    before = before.replace(
        "if has_gpu:\n        torch.cuda.set_device(local_rank)", chosen.replace("    " * 3, "    " * 2)
    )
    assert "on a GPU" in before
    after, level, _ = repair(before, "CUD501")
    assert level is Applicability.UNSAFE
    choice = after.index("torch.cuda.set_device(")
    assert choice < after.index("init_process_group")
    assert after[:choice].rstrip().endswith("if torch.cuda.is_available():")


VISIBLE = """
    import os
    import sys

    import torch
    {imports}

    def device_of(gpus):
        if torch.cuda.is_available():
            os.environ["CUDA_VISIBLE_DEVICES"] = {value}
            return torch.device({device})
        return torch.device("cpu")


    print(torch.ones(1, device=device_of({given})))
"""


@pytest.mark.parametrize(
    ("imports", "value", "device", "given"),
    [
        pytest.param("", "gpus", '"cuda:0"', '"1"', id="names GPU 0 later"),
        pytest.param("", "str(gpus)", '"cuda", 0', "1", id="names GPU 0 by its number"),
        pytest.param("", "str(gpus)", "torch.ones(1).cuda(0).device", "1", id="moves to GPU 0 by its number"),
        pytest.param("", "str(gpus)", "torch.ones(1, device=0).device", "1", id="makes something on GPU 0"),
        pytest.param("", "gpus", '"cuda"', '"1,2,3"', id="several GPUs"),
        pytest.param("", "str(gpus)", '"cuda"', '"1,2"', id="several GPUs as a text of a text"),
        pytest.param("", 'f"{gpus}"', '"cuda"', '"2, 3"', id="several GPUs as a text that is put together"),
        pytest.param("", "gpus", '"cuda"', "sys.argv[1]", id="GPUs from outside"),
        pytest.param("import onnxruntime\n", "str(gpus)", '"cuda"', "1", id="onnxruntime does not listen"),
        pytest.param("import tensorflow as tf\n", "str(gpus)", '"cuda"', "1", id="TensorFlow does not listen"),
        pytest.param("from llama_cpp import Llama\n", "str(gpus)", '"cuda"', "1", id="llama.cpp does not listen"),
        pytest.param("import rapidocr_onnxruntime\n", "str(gpus)", '"cuda"', "1", id="what is built on it neither"),
    ],
)
def test_an_index_is_no_repair_where_it_means_another_gpu_or_none(
    imports: str, value: str, device: str, given: str
) -> None:
    before = text_of(VISIBLE.format(imports=imports, value=value, device=device, given=given))
    after, *_ = repair(before, "CUD202")
    assert "set_device" not in after


def test_an_index_is_a_repair_where_it_means_the_same_gpu() -> None:
    before = text_of(VISIBLE.format(imports="", value="str(gpus)", device='"cuda"', given="1"))
    after, level, _ = repair(before, "CUD202")
    assert "torch.cuda.set_device(gpus)" in after
    assert level is Applicability.UNSAFE


STATEMENT = """
    import argparse
    import sys

    import torch


    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", type=int)
        args = parser.parse_args()
        torch.cuda.device({device})
        print(torch.ones(2).cuda(), args)


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize(
    ("device", "level"),
    [
        ("1", Applicability.UNSAFE),
        ('"cuda:1"', Applicability.UNSAFE),
        ("args.gpu", Applicability.UNSAFE),
        ("int(sys.argv[1])", Applicability.UNSAFE),
        ("torch.device(sys.argv[1])", Applicability.DISPLAY),
        ("sys.argv[1]", Applicability.DISPLAY),
    ],
)
def test_a_device_is_selected_only_where_it_has_a_number(device: str, level: Applicability) -> None:
    """``set_device`` refuses ``cuda`` without a number, which a statement takes for the current GPU."""
    assert repair(text_of(STATEMENT.format(device=device)), "CUD204")[1] is level
