# expect: CUD305 confirmed
import multiprocessing
import queue

import torch


def work(tasks, out):
    try:
        out.put(str(tasks.get(timeout=3)))
    except queue.Empty:
        out.put("nothing came")


def main():
    context = multiprocessing.get_context("spawn")
    tasks, out = context.Queue(), context.Queue()
    worker = context.Process(target=work, args=(tasks, out))
    worker.start()
    stream = torch.cuda.Stream()
    tasks.put(stream)
    print(out.get(timeout=60))
    worker.join()


if __name__ == "__main__":
    main()
