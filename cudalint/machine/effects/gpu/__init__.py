"""What touches a GPU in any framework: CUDA itself, arrays, the choice of a device."""
