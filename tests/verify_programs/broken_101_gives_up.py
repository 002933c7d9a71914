# expect: CUD101 confirmed
# needs: jax
# limit: 90
import multiprocessing

import jax.numpy as jnp


def work(n):
    return float(jnp.ones(n).sum())


if __name__ == "__main__":
    print(jnp.ones(3).sum())
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map_async(work, [1, 2]).get(timeout=4))
