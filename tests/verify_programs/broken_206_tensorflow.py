# expect: CUD206 confirmed
# needs: tensorflow
# limit: 120
import multiprocessing
import time


def work(n):
    import tensorflow

    value = float(tensorflow.reduce_sum(tensorflow.ones((n, 4))))
    time.sleep(3)
    return value


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        print(pool.map(work, [1, 2, 3, 4], chunksize=1))
