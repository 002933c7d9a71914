"""Paper CUDA: stub GPU frameworks under the real multiprocessing, and a runner for programs on them."""
