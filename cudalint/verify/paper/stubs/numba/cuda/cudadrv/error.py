"""Where numba's errors live."""


class CudaDriverError(Exception):
    """An error of the driver."""


class CudaSupportError(ImportError):
    """CUDA cannot be used."""
