#!/usr/bin/env python3
"""Hugging Face transformers' CPU path of Mamba-2 beside chunkscan.

Theirs is the SSD part of Mamba2Mixer.torch_forward, alone: what stands around it in the layer
(both projections, the convolution, its activation, the gated norm) is replaced by modules that hand
over ready tensors. Releases of transformers without torch_forward keep the SSD in a function of its own,
mamba2_chunk_scan, which is called there. Ours is `chunkscan bench` at the same sizes, in a process of
its own. Both run on the same number of threads, with D, dt_bias and softplus. The error of both is
measured on the same tensors against chunkscan's double-precision reference.

Needs, and does not install: pip install torch 'transformers<5' numpy
(transformers 5 has no torch_forward; its mamba2_chunk_scan is the faster opponent.)
torch_forward takes 11 GB of memory at the default shape.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.models.mamba2 import modeling_mamba2
except ImportError as error:
    sys.exit(f"{error}\nNeeds: pip install torch 'transformers<5' numpy")

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
PROGRAM = Path(__file__).resolve().parent.parent / "build/release/cli/chunkscan"


def standard_tensors(shape, dtype):
    """The standard data of docs/numerics.md, named as chunkscan's files name them."""
    b, l, h, p, n, g = shape
    generator = torch.Generator().manual_seed(1)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator)

    def uniform(low, high):
        return low + (high - low) * torch.rand(h, generator=generator)

    wide = {"x": normal(b, l, h, p), "dt": normal(b, l, h),
            "B": normal(b, l, g, n), "C": normal(b, l, g, n)}
    return {name: tensor.to(dtype) for name, tensor in wide.items()} | {
        "A": -torch.exp(uniform(0.0, 2.7)), "D": normal(h), "dt_bias": uniform(-4.0, -3.0)}


class HandsOver(torch.nn.Module):
    """A layer that gives the same tensor whatever it is given."""

    def __init__(self, tensor):
        super().__init__()
        self.tensor = tensor

    def forward(self, *_):
        return self.tensor


class FirstInput(torch.nn.Module):
    """A layer that gives back its first input: the gated norm without gate and norm."""

    def forward(self, value, *_):
        return value


def torch_forward(tensors, shape, chunk_size):
    """() -> y by Mamba2Mixer.torch_forward."""
    b, l, h, p, n, g = shape
    hidden_size = 8  # unused: no projection is left
    config = transformers.Mamba2Config(
        hidden_size=hidden_size, expand=h * p // hidden_size, num_heads=h, head_dim=p, state_size=n,
        n_groups=g, chunk_size=chunk_size, num_hidden_layers=1)
    mixer = modeling_mamba2.Mamba2Mixer(config, layer_idx=0).eval()
    dtype = tensors["x"].dtype
    xBC = torch.cat([tensors[name].reshape(b, l, -1) for name in ("x", "B", "C")], dim=-1)
    gate = torch.zeros(b, l, h * p, dtype=dtype)
    mixer.in_proj = HandsOver(torch.cat([gate, xBC, tensors["dt"]], dim=-1))
    mixer.conv1d = HandsOver(xBC.transpose(1, 2).contiguous())
    mixer.act = torch.nn.Identity()
    mixer.norm = FirstInput()
    mixer.out_proj = torch.nn.Identity()
    mixer.A_log.data = torch.log(-tensors["A"])
    mixer.D.data = tensors["D"]
    mixer.dt_bias.data = tensors["dt_bias"]
    hidden_states = torch.zeros(b, l, hidden_size, dtype=dtype)
    return lambda: mixer.torch_forward(hidden_states).reshape(b, l, h, p)


def chunk_scan(tensors, chunk_size):
    """() -> y by mamba2_chunk_scan."""
    t = tensors
    return lambda: modeling_mamba2.mamba2_chunk_scan(
        t["x"], t["dt"], t["A"], t["B"], t["C"], chunk_size=chunk_size, D=t["D"],
        dt_bias=t["dt_bias"], dt_softplus=True).to(t["x"].dtype)


def median_us(call, rounds):
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def chunkscan(program, *arguments):
    """The program's JSON. Its exit code 1, a failed check, is an answer too."""
    command = [program, *map(str, arguments), "--json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if result.returncode not in (0, 1):
        sys.exit(f"{program} failed")
    return json.loads(result.stdout)


def errors_of_y(program, tensors, their_y):
    """(ours, theirs) against the double-precision reference."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/call.safetensors"
        save_file(tensors, file, {"dt_softplus": "true"})
        ours = chunkscan(program, "check", "--input", file)["outputs"]
        # For theirs the reference is the backend, and their y what it is compared with. In fp32,
        # which holds the same numbers: 16 bits would round the reference's y as well.
        wide = {name: tensor.float() for name, tensor in (tensors | {"y": their_y}).items()}
        save_file(wide, file, {"dt_softplus": "true"})
        theirs = chunkscan(program, "check", "--input", file, "--backend", "reference")["outputs"]
    return (next(o["rel_err"] for o in ours if o["name"] == "y"),
            next(o["rel_err"] for o in theirs if o["name"] == "y" and o["against"] == file))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default="1,2048,24,64,128,1", help="b,l,h,p,n,g")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--chunk-size", type=int, default=256, help="theirs; ours chooses its own")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="timed calls of theirs")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    flags = parser.parse_args()
    if not flags.program.exists():
        sys.exit(f"no program at {flags.program}; ./dev chunkscan builds it")
    shape = [int(size) for size in flags.shape.split(",")]
    tensors = standard_tensors(shape, DTYPES[flags.dtype])

    torch.set_num_threads(flags.threads)
    if hasattr(modeling_mamba2.Mamba2Mixer, "torch_forward"):
        name, call = "Mamba2Mixer.torch_forward", torch_forward(tensors, shape, flags.chunk_size)
    else:
        name, call = "mamba2_chunk_scan", chunk_scan(tensors, flags.chunk_size)
    with torch.inference_mode():
        our_error, their_error = errors_of_y(flags.program, tensors, call().contiguous())
        their_us = median_us(call, flags.rounds)
    ours = chunkscan(flags.program, "bench", "--shape", flags.shape, "--dtype", flags.dtype,
                     "--features", "D,dt_bias,softplus", "--threads", flags.threads)["rows"][0]

    print(f"{their_us / ours['median_us']:.1f}x faster at {flags.shape} (b,l,h,p,n,g), "
          f"{flags.dtype}, {flags.threads} threads")
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    for who, microseconds, error in (
            (f"chunkscan {ours['backend']} [{ours['config']}]", ours["median_us"], our_error),
            (f"{name} ({versions})", their_us, their_error)):
        print(f"{microseconds / 1e3:10.2f} ms   error of y {error:.1e}   {who}")


if __name__ == "__main__":
    main()
