# expect: nothing
# needs: numba.cuda
import multiprocessing

import numpy
from numba import cuda


def total(array):
    return float(array.sum())


if __name__ == "__main__":
    array = cuda.to_device(numpy.ones(4))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [array.copy_to_host()]))
