# expect: CUD305 confirmed
# needs: numba.cuda
import multiprocessing

import numpy
from numba import cuda


def total(array):
    return float(array.copy_to_host().sum())


def main():
    array = cuda.to_device(numpy.ones(4))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [array]))


if __name__ == "__main__":
    main()
