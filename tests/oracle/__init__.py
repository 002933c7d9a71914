"""The oracle: programs from a grammar, run under paper CUDA, against what cudalint says about them."""
