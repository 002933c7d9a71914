"""Where CuPy's errors of the runtime live."""


class CUDARuntimeError(RuntimeError):
    """An error of the CUDA runtime."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text or status)
        self.status = status

    def __reduce__(self) -> tuple:  # type: ignore[type-arg]
        return CUDARuntimeError, (self.status, str(self))
