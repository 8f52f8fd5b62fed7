#!/usr/bin/env python3
"""mamba_ssm's Triton kernels beside chunkscan, on one GPU and in one process.

For each row: CUDA-graph replay and ordinary (eager) calls of both, medians in microseconds, and the
error of both against a double-precision reference on sampled heads. D, dt_bias and dt_softplus are
on. Where the inputs fit the L2 cache it is overwritten before each call.

Needs torch, triton and mamba_ssm's Python files on PYTHONPATH (mamba_ssm/ops/triton and
mamba_ssm/utils are enough, with empty package files), and chunkscan as a shared library
(cmake -DBUILD_SHARED_LIBS=ON):

  bench/compare_mamba_ssm.py --library build/shared/src/libchunkscan.so --suite rows,serving,sweep
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from chunkscan_ctypes import Call, Library  # noqa: E402

# name: b, l, h, p, n, g, chunk of the opponent
ROWS = {
    "blog": (4, 16384, 8, 64, 128, 1, 128),
    "blog p128": (4, 16384, 8, 128, 128, 1, 128),
    "blog q256": (4, 16384, 8, 64, 128, 1, 256),
    "blog 2k": (4, 2048, 8, 64, 128, 1, 128),
    "blog 64k": (4, 65536, 8, 64, 128, 1, 128),
    "blog n64": (4, 16384, 8, 64, 64, 1, 128),
    "blog n256": (4, 16384, 8, 64, 256, 1, 128),
    "mamba2-2.7b": (8, 4096, 80, 64, 128, 1, 256),
    "nemotron-h-8b": (1, 8192, 128, 64, 128, 8, 128),
    "granite-4.0-h-small": (1, 8192, 128, 64, 128, 1, 256),
    "falcon-h1-34b": (1, 8192, 32, 128, 256, 2, 128),
    "prefill 512": (1, 512, 80, 64, 128, 1, 256),
    "long 128k": (1, 131072, 64, 64, 128, 1, 256),
}
SWEEP = {f"sweep n{n} l{l}": (4, l, 8, 64, n, 1, 128)
         for n in (64, 128, 256, 512) for l in (2 ** k for k in range(10, 19))}
# What servers meet: shape and what is different from the rows above.
SERVING = {
    "packed 10 x 850": ((1, 8500, 80, 64, 128, 1, 256), {"lengths": [850] * 10}),
    "packed 256 x 128": ((1, 32768, 80, 64, 128, 1, 256), {"lengths": [128] * 256}),
    "with z": ((8, 4096, 80, 64, 128, 1, 256), {"z": True}),
    "fp16": ((8, 4096, 80, 64, 128, 1, 256), {"dtype": torch.float16}),
    "fp32": ((4, 4096, 32, 64, 128, 1, 128), {"dtype": torch.float32}),
    "h 30, views of a projection": ((8, 4096, 30, 64, 128, 1, 256), {"projection": True}),
    "b 4096, l 64, h 8": ((4096, 64, 8, 64, 128, 1, 64), {}),
}
DEVICE = "cuda"


def make(shape, dtype=torch.bfloat16, z=False, lengths=None, projection=False):
    b, l, h, p, n, g, _ = shape
    generator = torch.Generator(DEVICE).manual_seed(1)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator, device=DEVICE).to(dtype)

    def uniform(low, high):
        return low + (high - low) * torch.rand(h, generator=generator, device=DEVICE)

    if projection:  # [x, B, C, dt] side by side, as a model's in_proj leaves them
        widths = (h * p, g * n, g * n, h)
        x, B, C, dt = normal(b, l, sum(widths)).split(widths, dim=-1)
        tensors = {"x": x.unflatten(-1, (h, p)), "dt": dt, "B": B.unflatten(-1, (g, n)),
                   "C": C.unflatten(-1, (g, n))}
    else:
        tensors = {"x": normal(b, l, h, p), "dt": normal(b, l, h), "B": normal(b, l, g, n),
                   "C": normal(b, l, g, n)}
    tensors |= {"A": -torch.exp(uniform(0.0, 2.7)), "D": torch.randn(h, device=DEVICE),
                "dt_bias": uniform(-4.0, -3.0)}
    if z:
        tensors["z"] = normal(b, l, h, p)
    if lengths:
        offsets = [0]
        for length in lengths:
            offsets.append(offsets[-1] + length)
        tensors["cu_seqlens"] = torch.tensor(offsets, dtype=torch.int32, device=DEVICE)
        tensors["initial_states"] = torch.randn(len(lengths), h, p, n, device=DEVICE)
    return tensors


def reference(t, row, head, begin, end, initial):
    """y of one head of one sequence, in double: the chunked form, exact up to double's rounding."""
    q = 64
    group = head // (t["x"].shape[2] // t["B"].shape[2])
    x, B, C = (t[k][row, begin:end, i].double() for k, i in (("x", head), ("B", group), ("C", group)))
    dt = torch.nn.functional.softplus(t["dt"][row, begin:end, head].double()
                                      + t["dt_bias"][head].double())
    log_a = dt * t["A"][head].double()
    S = (torch.zeros(x.shape[1], B.shape[1], dtype=torch.double, device=DEVICE) if initial is None
         else initial.double())
    ys = []
    for i in range(0, x.shape[0], q):
        xs, Bs, Cs, ds, cs = x[i:i + q], B[i:i + q], C[i:i + q], dt[i:i + q], log_a[i:i + q].cumsum(0)
        L = torch.exp(torch.tril(cs[:, None] - cs[None, :])).tril()
        ys.append((Cs @ Bs.T * L * ds) @ xs + torch.exp(cs)[:, None] * (Cs @ S.T))
        S = torch.exp(cs[-1]) * S + (xs * (ds * torch.exp(cs[-1] - cs))[:, None]).T @ Bs
    y = torch.cat(ys) + t["D"][head].double() * x
    if "z" in t:
        y = y * torch.nn.functional.silu(t["z"][row, begin:end, head].double())
    return y


def error(t, y):
    """||y - ref|| / ||ref|| over the first and the last head of the first and the last sequence."""
    b, l, h = t["x"].shape[:3]
    if "cu_seqlens" in t:
        offsets = t["cu_seqlens"].tolist()
        sequences = [(0, offsets[i], offsets[i + 1], i) for i in (0, len(offsets) - 2)]
    else:
        sequences = [(row, 0, l, row) for row in (0, b - 1)]
    off = whole = 0.0
    for row, begin, end, state in sequences:
        for head in (0, h - 1):
            initial = t["initial_states"][state, head] if "initial_states" in t else None
            want = reference(t, row, head, begin, end, initial)
            off += (y[row, begin:end, head].double() - want).square().sum().item()
            whole += want.square().sum().item()
    return (off / whole) ** 0.5


FLUSH = None


def overwrite_l2():
    global FLUSH
    if FLUSH is None:
        FLUSH = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    FLUSH.fill_(1)


def median_us(call, repeat, flush):
    times = []
    for _ in range(repeat):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if flush:
            overwrite_l2()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return statistics.median(times)


def graph_of(call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            call()
    return graph


def measure(call, repeat, flush):
    """First call, graph replay, eager."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first = (time.perf_counter() - start) * 1000
    for _ in range(3):
        call()
    graph = graph_of(call)
    graph.replay()
    return {"first_call_ms": first, "graph_us": median_us(graph.replay, repeat, flush),
            "eager_us": median_us(call, repeat, flush)}


def triton_call(t, shape):
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    arguments = {k: t.get(k) for k in ("D", "z", "dt_bias")}
    if "cu_seqlens" in t:
        offsets = t["cu_seqlens"]
        lengths = (offsets[1:] - offsets[:-1]).long()
        arguments["seq_idx"] = torch.repeat_interleave(
            torch.arange(len(lengths), device=DEVICE, dtype=torch.int32), lengths)[None]
        # It has initial states for the first sequence alone.
        arguments["initial_states"] = t["initial_states"][:1].to(t["x"].dtype)
    result = {}

    def call():
        result["y"] = mamba_chunk_scan_combined(t["x"], t["dt"], t["A"], t["B"], t["C"], shape[6],
                                                dt_softplus=True, **arguments)
    return call, result


def measure_triton(t, shape, flags, flush):
    try:
        call, result = triton_call(t, shape)
        times = measure(call, flags.repeat, flush)
        if "cu_seqlens" not in t:
            times["err"] = error(t, result["y"])
        return times
    except Exception as failure:  # it does not take every shape
        return {"failed": str(failure).splitlines()[0][:100]}


def run_row(library, name, shape, options, flags):
    t = make(shape, **options)
    flush = sum(v.nbytes for v in t.values()) < 200 << 20
    row = {"name": name, "shape": shape[:6], "opponent_chunk": shape[6],
           "dtype": str(t["x"].dtype).split(".")[-1]}
    row["triton"] = {"failed": "not asked for"} if flags.alone else measure_triton(t, shape, flags,
                                                                                 flush)
    row["ours"] = []
    for backend, config in [(None, None)] + flags.also:
        y = torch.full_like(t["x"], float("nan"), memory_format=torch.contiguous_format)
        wanted = {k: v for k, v in (("backend", backend), ("config", config)) if v}
        try:
            ours = Call(library, t, {"y": y}, dt_softplus=1, **wanted)
            torch.cuda.synchronize()
            start = time.perf_counter()
            ours.prepare()
            prepare = (time.perf_counter() - start) * 1000
            times = measure(ours.run, flags.repeat, flush)
            times["first_call_ms"] += prepare
            times["eager_us"] = median_us(ours.forward, flags.repeat, flush)
            times |= {"backend": ours.text("backend"), "config": ours.text("config"),
                      "workspace_bytes": ours.workspace_bytes(), "err": error(t, y)}
        except RuntimeError as failure:
            times = {"backend": backend, "config": config, "failed": str(failure)[:200]}
        row["ours"].append(times)
    best = row["ours"][0]
    if "graph_us" in best and "graph_us" in row["triton"]:
        row["ratio_graph"] = row["triton"]["graph_us"] / best["graph_us"]
        row["ratio_eager"] = row["triton"]["eager_us"] / best["eager_us"]
    return row


def line(row):
    theirs = row["triton"]
    text = f"{row['name']:28s} "
    text += (f"triton {theirs['graph_us']:8.1f} {theirs['eager_us']:8.1f} us "
             f"err {100 * theirs.get('err', float('nan')):.3f} %" if "graph_us" in theirs
             else f"triton failed: {theirs['failed']}")
    for ours in row["ours"]:
        text += "\n      "
        text += (f"{ours['backend']:13s} {ours['graph_us']:8.1f} {ours['eager_us']:8.1f} us "
                 f"err {100 * ours['err']:.4f} %  first {ours['first_call_ms']:.0f} ms  "
                 f"{ours['config']}" if "graph_us" in ours
                 else f"{ours['backend']} failed: {ours['failed']}")
    return text + (f"\n      ratio {row['ratio_graph']:.2f}" if "ratio_graph" in row else "")


def markdown(rows):
    yield "| row | Triton graph | eager | error | ours graph | eager | error | ratio graph | eager |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        a, b = row["triton"], row["ours"][0]
        cells = [f"{d.get(k, float('nan')):.0f}" for d in (a, b) for k in ("graph_us", "eager_us")]
        errors = [f"{100 * d.get('err', float('nan')):.3g} %" for d in (a, b)]
        ratios = [f"{row.get(k, float('nan')):.2f}" for k in ("ratio_graph", "ratio_eager")]
        yield (f"| {row['name']} | {cells[0]} | {cells[1]} | {errors[0]} | {cells[2]} | {cells[3]} "
               f"| {errors[1]} | {ratios[0]} | {ratios[1]} |")


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for n in sorted({row["shape"][4] for row in rows}):
        points = [(row["shape"][1], row["ratio_graph"]) for row in rows
                  if row["shape"][4] == n and "ratio_graph" in row]
        if points:
            axes.plot(*zip(*points), marker="o", label=f"n = {n}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set(xscale="log", xlabel="l (tokens)", ylabel="speed-up over Triton (graph)",
             title="b 4, h 8, p 64, bf16")
    axes.set_xscale("log", base=2)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libchunkscan.so")
    parser.add_argument("--suite", default="rows", help="comma-separated: rows, serving, sweep")
    parser.add_argument("--only", help="rows whose names contain one of these, comma-separated")
    parser.add_argument("--also", action="append", default=[], metavar="BACKEND[:CONFIG]",
                        help="measure this too, beside the default plan")
    parser.add_argument("--alone", action="store_true", help="without the opponent")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", help="write all figures here")
    parser.add_argument("--markdown", help="write the table here")
    parser.add_argument("--plot", help="write the sweep's plot here")
    flags = parser.parse_args()
    flags.also = [tuple(a.split(":", 1)) if ":" in a else (a, None) for a in flags.also]
    library = Library(flags.library)
    suites = {"rows": {k: (v, {}) for k, v in ROWS.items()}, "serving": SERVING,
              "sweep": {k: (v, {}) for k, v in SWEEP.items()}}
    rows = []
    for suite in flags.suite.split(","):
        for name, (shape, options) in suites[suite].items():
            if flags.only and not any(part in name for part in flags.only.split(",")):
                continue
            rows.append(run_row(library, name, shape, options, flags) | {"suite": suite})
            print(line(rows[-1]), flush=True)
    for suite in flags.suite.split(","):
        ratios = [row["ratio_graph"] for row in rows
                  if row["suite"] == suite and "ratio_graph" in row]
        if ratios:
            print(f"{suite}: geometric mean {statistics.geometric_mean(ratios):.2f}, "
                  f"least {min(ratios):.2f}")
    if flags.json:
        device = torch.cuda.get_device_name()
        Path(flags.json).write_text(json.dumps({"device": device, "rows": rows}, indent=1) + "\n")
    if flags.markdown:
        Path(flags.markdown).write_text("\n".join(markdown(rows)) + "\n")
    if flags.plot:
        plot([row for row in rows if row["suite"] == "sweep"], flags.plot)


if __name__ == "__main__":
    main()
