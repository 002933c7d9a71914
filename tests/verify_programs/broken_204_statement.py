# expect: CUD204 confirmed
# gpus: 2
import torch


def main():
    torch.cuda.device(1)
    x = torch.ones(3, device="cuda")
    print(x.device)


if __name__ == "__main__":
    main()
