"""Where numba's errors of the driver live."""

from numba.cuda.cudadrv.error import CudaDriverError, CudaSupportError  # noqa: F401


class CudaAPIError(CudaDriverError):
    """An error code of the driver."""

    def __init__(self, code: int, msg: str) -> None:
        super().__init__(code, msg)
        self.code, self.msg = code, msg

    def __str__(self) -> str:
        return f"[{self.code}] {self.msg}"
