# expect: nothing
# needs: tensorflow
import multiprocessing


def work(n):
    import tensorflow

    return float(tensorflow.reduce_sum(tensorflow.ones((n, 4))))


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2]))
