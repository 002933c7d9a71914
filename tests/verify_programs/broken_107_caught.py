# expect: CUD107 confirmed
# Who catches the refusal goes on as if there were nothing to load.
import torch.multiprocessing as mp
import torch
from torch.utils.data import DataLoader, TensorDataset


def work(queue):
    try:
        for (x,) in DataLoader(TensorDataset(torch.ones(2)), num_workers=1):
            queue.put(x.item())
    except AssertionError:
        queue.put("nothing to load")


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=work, args=(queue,), daemon=True)
    worker.start()
    print(queue.get())
    worker.join()
