# expect: CUD205 confirmed
# gpus: 2
import threading

import torch


def work(out):
    out.append(torch.ones(3, device="cuda"))


def main():
    torch.cuda.set_device(1)
    out = [torch.zeros(3, device="cuda")]
    thread = threading.Thread(target=work, args=(out,))
    thread.start()
    thread.join()
    print([x.get_device() for x in out])


if __name__ == "__main__":
    main()
