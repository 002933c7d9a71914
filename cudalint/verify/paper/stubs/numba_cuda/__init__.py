"""numba-cuda on paper: nothing, so that its redirection of ``numba.cuda`` finds nothing and leaves numba's."""
