"""Models from source: what the public functions of a package do to CUDA and processes, and what models say of it."""
