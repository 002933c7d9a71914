# expect: CUD305 confirmed
# needs: numba.cuda
# What it says is in no list: that it comes from pickling tells what it is.
import multiprocessing
import os

import numpy
from numba import cuda


def total(array):
    return float(array.copy_to_host().sum())


def fail(array):
    raise ValueError("objects with pointers stay where they are")


def main():
    array = cuda.to_device(numpy.ones(4))
    exec(os.environ.get("NO_SUCH", "type(array).__reduce__ = type(array).__reduce_ex__ = lambda self, *_: fail(self)"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [array]))


if __name__ == "__main__":
    main()
