// Compiled once per instruction set by Highway's foreach_target; the table is chosen per plan.
#include "cpu/kernels.h"

#include <vector>

// Few targets are enough: bits 0 to 7 are the x86 targets beyond AVX3 (plain AVX-512), which
// bring nothing to fp32 code; SVE's vectors have no size and cannot be a tile's members.
#define HWY_DISABLED_TARGETS (0xFF | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
// after the two above
#include "cpu/bf16-inl.h"
#include "cpu/fp32-inl.h"
#include "cpu/threads.h"
#include "cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// y of tokens behind the last packed sequence, and chunk_states rows behind the last state.
void zero_rest(const CpuCall& call, const Sequence* sequences, int threads) {
  const Problem& problem = call.problem;
  const Buffers& buffers = call.buffers;
  if (problem.packing != Packing::kCuSeqlens) return;
  // Without any sequence everything is behind the last one.
  const Sequence last = problem.sequences > 0 ? sequences[problem.sequences - 1] : Sequence();
  const std::int64_t begin = last.end;
  parallel_for(threads, problem.l - begin, [&](std::int64_t i, int) {
    float zeros[kRowPad] = {};
    for (std::int64_t head = 0; head < problem.h; ++head) {
      for (std::int64_t k = 0; k < problem.p; k += kRowPad) {
        store_row(problem.y, buffers.y.at(0, begin + i, head, k), buffers.y.strides[3],
                  std::min(kRowPad, problem.p - k), zeros);
      }
    }
  });
  if (!buffers.chunk_states) return;
  std::int64_t row = last.chunk_states_row + (last.end - last.begin) / problem.state_every;
  for (; row < problem.l / problem.state_every; ++row) {
    float zeros[kRowPad] = {};
    for (std::int64_t head = 0; head < problem.h; ++head) {
      for (std::int64_t i = 0; i < problem.p; ++i) {
        for (std::int64_t k = 0; k < problem.n; k += kRowPad) {
          store_row(*problem.chunk_states, buffers.chunk_states.at(0, row, head, i, k),
                    buffers.chunk_states.strides[4], std::min(kRowPad, problem.n - k), zeros);
        }
      }
    }
  }
}

// A y larger than the caches near the cores is written past them: fetching its lines first only to
// overwrite them costs 8 % at (1, 2048, 24, 64, 128, 1) in fp32 (Zen 5).
constexpr std::int64_t kStreamBytes = std::int64_t{4} << 20;

template <class Products>
void run(const Problem& problem, const Config& config, const Buffers& buffers, int threads,
         std::byte* workspace) {
  const CpuLayout layout(problem, config, threads);
  const std::int64_t y_bytes =
      problem.b * problem.l * problem.h * problem.p * buffers.y.element_bytes;
  const CpuCall call{problem, buffers, config, layout, workspace, y_bytes > kStreamBytes};
  const int running = in_forked_child() ? 1 : threads;
  Sequence* sequences = reinterpret_cast<Sequence*>(workspace + layout.sequences);
  fill_sequences(problem, buffers, sequences);
  zero_rest(call, sequences, running);
  const std::int64_t blocks_of_group = layout.blocks_per_group * layout.slices;
  const std::int64_t blocks_of_sequence = problem.g * blocks_of_group;
  const auto block_at = [&](std::int64_t i, int thread) {
    const std::int64_t group = i % blocks_of_sequence / blocks_of_group;
    const std::int64_t first = i % blocks_of_group / layout.slices * layout.heads;
    const std::int64_t begin = i % layout.slices * layout.slice;
    return Block{sequences[i / blocks_of_sequence],
                 group,
                 group * problem.heads_per_group() + first,
                 std::min(layout.heads, problem.heads_per_group() - first),
                 begin,
                 std::min(layout.slice, problem.p - begin),
                 block_scratch(call, thread)};
  };
  if (layout.slices > 1 && buffers.initial_states) {
    parallel_for(running, problem.sequences * problem.h, [&](std::int64_t i, int thread) {
      find_initial_most(call, i / problem.h, i % problem.h, worker_scratch(call, thread));
    });
  }
  parallel_for(running, problem.sequences * blocks_of_sequence, [&](std::int64_t i, int thread) {
    run_block<Products>(call, block_at(i, thread), worker_scratch(call, thread));
  });
}

constexpr Isa kIsa = HWY_TARGET == HWY_AVX3   ? Isa::kAvx512
                     : HWY_TARGET == HWY_AVX2 ? Isa::kAvx2
                     : HWY_TARGET == HWY_SSE4 ? Isa::kSse4
                     : HWY_TARGET == HWY_NEON ? Isa::kNeon
                                              : Isa::kBaseline;

const CpuKernels& table() {
  static constexpr CpuKernels kTable{kIsa, &run<Fp32>};
  return kTable;
}

#if HWY_TARGET == HWY_AVX3
const CpuKernels& table_native_bf16() {
  static constexpr CpuKernels kTable{Isa::kAvx512Bf16, &run<NativeBf16>};
  return kTable;
}
#endif

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkscan {

HWY_EXPORT(table);

namespace {

struct Target {
  Isa isa;
  std::int64_t highway;
};
constexpr Target kTargets[] = {{Isa::kAvx512, HWY_AVX3},
                               {Isa::kAvx2, HWY_AVX2},
                               {Isa::kSse4, HWY_SSE4},
                               {Isa::kNeon, HWY_NEON},
                               {Isa::kBaseline, HWY_STATIC_TARGET}};

const CpuKernels& table_for(std::int64_t target) {
  hwy::ChosenTarget chosen;  // our own instead of Highway's global one: two plans may differ
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(table)[chosen.GetIndex()]();
}

bool has_native_bf16() {
#if HWY_TARGETS & HWY_AVX3
  return (hwy::SupportedTargets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

std::span<const Isa> cpu_isas() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> found;
    if (has_native_bf16()) found.push_back(Isa::kAvx512Bf16);
    for (const Target& target : kTargets) {
      const bool usable = (hwy::SupportedTargets() & HWY_TARGETS & target.highway) != 0;
      // NEON is the baseline where it exists; its row stands before.
      if (usable && table_for(target.highway).isa == target.isa) found.push_back(target.isa);
    }
    return found;
  }();
  return isas;
}

const CpuKernels& cpu_kernels(Isa isa) {
#if HWY_TARGETS & HWY_AVX3
  if (isa == Isa::kAvx512Bf16) return N_AVX3::table_native_bf16();
#endif
  for (const Target& target : kTargets) {
    if (target.isa == isa) return table_for(target.highway);
  }
  return table_for(HWY_STATIC_TARGET);
}

}  // namespace chunkscan
#endif  // HWY_ONCE
