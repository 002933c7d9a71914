# expect: CUD304 refuted
# limit: 60
import os
import time  # noqa: F401

import torch
import torch.multiprocessing as mp


def produce(out):
    out.put(torch.ones(3, device="cuda"))
    exec(os.environ.get("NO_SUCH", "time.sleep(2)"))


def main():
    context = mp.get_context("spawn")
    out = context.Queue()
    child = context.Process(target=produce, args=(out,))
    child.start()
    print(out.get().sum().item())
    child.join()


if __name__ == "__main__":
    main()
