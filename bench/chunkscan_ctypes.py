"""The C interface (chunkscan_c.h) for torch tensors, through ctypes."""

import ctypes

import torch

I32, I64, F32 = ctypes.c_int32, ctypes.c_int64, ctypes.c_float
DTYPES = {torch.float64: 0, torch.float32: 1, torch.bfloat16: 2, torch.float16: 3,
          torch.int32: 4, torch.int64: 5}
INPUTS = "x dt A B C D z dt_bias initial_states seq_idx cu_seqlens".split()
OUTPUTS = "y final_states chunk_states log_decay".split()


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", I32), ("device", I32), ("device_index", I32),
                ("rank", I32), ("shape", I64 * 5), ("strides", I64 * 5)]


class Inputs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, Tensor) for name in INPUTS]


class Outputs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, Tensor) for name in OUTPUTS]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dt_softplus", I32), ("batch_invariant", I32),
                ("check_contents", I32), ("threads", I32), ("dt_min", F32), ("dt_max", F32),
                ("state_every", I64), ("chunk_size", I64), ("backend", ctypes.c_char_p),
                ("config", ctypes.c_char_p)]


def view(tensor):
    if tensor is None:
        return Tensor()
    rank = tensor.dim()
    return Tensor(tensor.data_ptr(), DTYPES[tensor.dtype], int(tensor.is_cuda),
                  tensor.device.index or 0, rank, (I64 * 5)(*tensor.shape),
                  (I64 * 5)(*tensor.stride()))


def fill(struct, names, tensors):
    return struct(ctypes.sizeof(struct), *(view(tensors.get(name)) for name in names))


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.chunkscan_last_error.restype = ctypes.c_char_p
        for name in ("backend", "config", "text"):
            getattr(self.c, f"chunkscan_plan_{name}").restype = ctypes.c_char_p
        self.c.chunkscan_plan_workspace_bytes.restype = ctypes.c_size_t

    def require(self, status):
        if status:
            raise RuntimeError(self.c.chunkscan_last_error().decode())


class Call:
    """One call on fixed tensors. `options` are fields of chunkscan_options."""

    def __init__(self, library, inputs, outputs, **options):
        self.library, self.tensors = library, (inputs, outputs)
        self.inputs = fill(Inputs, INPUTS, inputs)
        self.outputs = fill(Outputs, OUTPUTS, outputs)
        self.options = Options()
        library.c.chunkscan_options_init(ctypes.byref(self.options), ctypes.sizeof(Options))
        for name, value in options.items():
            setattr(self.options, name, value.encode() if isinstance(value, str) else value)
        self.plan = ctypes.c_void_p()
        library.require(library.c.chunkscan_plan_make(
            ctypes.byref(self.inputs), ctypes.byref(self.outputs), ctypes.byref(self.options),
            ctypes.byref(self.plan)))
        self.workspace = None

    def __del__(self):
        if getattr(self, "plan", None):
            self.library.c.chunkscan_plan_destroy(self.plan)

    def text(self, what="text"):
        return getattr(self.library.c, f"chunkscan_plan_{what}")(self.plan).decode()

    def workspace_bytes(self):
        return self.library.c.chunkscan_plan_workspace_bytes(self.plan)

    def prepare(self):
        self.library.require(self.library.c.chunkscan_plan_prepare(self.plan))
        self.workspace = torch.empty(self.workspace_bytes(), dtype=torch.uint8,
                                     device=self.tensors[0]["x"].device)

    def run(self):
        """The planned call, on torch's current stream."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.require(self.library.c.chunkscan_plan_run(
            self.plan, ctypes.byref(self.inputs), ctypes.byref(self.outputs),
            ctypes.c_void_p(self.workspace.data_ptr()), stream))

    def forward(self):
        """The call of somebody who calls once."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.require(self.library.c.chunkscan_forward(
            ctypes.byref(self.inputs), ctypes.byref(self.outputs), ctypes.byref(self.options),
            stream))
