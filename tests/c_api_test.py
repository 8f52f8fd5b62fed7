"""The C interface through ctypes. usage: c_api_test.py LIBRARY"""

import ctypes
import math
import sys

I32, I64, F32 = ctypes.c_int32, ctypes.c_int64, ctypes.c_float


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", I32), ("device", I32), ("device_index", I32),
                ("rank", I32), ("shape", I64 * 5), ("strides", I64 * 5)]


class Inputs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, Tensor) for name in (
        "x dt A B C D z dt_bias initial_states seq_idx cu_seqlens").split()]


class Outputs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, Tensor) for name in "y final_states chunk_states log_decay".split()]


def tensor(values, *shape):
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return Tensor(ctypes.cast(values, ctypes.c_void_p), 1, 0, 0, len(shape), (I64 * 5)(*shape),
                  (I64 * 5)(*strides))


def floats(*values):
    return (F32 * len(values))(*values)


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.chunkscan_last_error.restype = ctypes.c_char_p
    x, dt, A, B, C = floats(1, 2, 3), floats(0.5, 0.25, 1), floats(-1), floats(1, 2, -1), floats(
        2, 1, 3)
    y = floats(0, 0, 0)
    inputs = Inputs(ctypes.sizeof(Inputs), tensor(x, 1, 3, 1, 1), tensor(dt, 1, 3, 1), tensor(A, 1),
                    tensor(B, 1, 3, 1, 1), tensor(C, 1, 3, 1, 1))
    outputs = Outputs(ctypes.sizeof(Outputs), tensor(y, 1, 3, 1, 1))
    status = library.chunkscan_forward(ctypes.byref(inputs), ctypes.byref(outputs), None, None)
    assert status == 0, library.chunkscan_last_error()
    state = 0.0
    for t in range(3):
        state = math.exp(dt[t] * A[0]) * state + dt[t] * x[t] * B[t]
        assert abs(y[t] - state * C[t]) < 1e-6, (t, y[t], state * C[t])

    inputs.dt.shape[1] = 4
    status = library.chunkscan_forward(ctypes.byref(inputs), ctypes.byref(outputs), None, None)
    assert status == 1
    sentence = library.chunkscan_last_error().decode()
    assert sentence == "[forward] dt: expected shape (b, l, h) = (1, 3, 1), got (1, 4, 1)", sentence


if __name__ == "__main__":
    main()
