"""pycuda.autoinit on paper: a context, current in the thread that imports it first."""

import pycuda.driver as cuda

cuda.init()
device = cuda.Device(0)
context = device.make_context()
