// What the heads of a group need of a chunk before they walk through it: B and C in fp32, C B^T,
// and chunk_cumsum. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_PREPARE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_PREPARE_INL_H
#undef CHUNKSCAN_CPU_PREPARE_INL_H
#else
#define CHUNKSCAN_CPU_PREPARE_INL_H
#endif

#include "cpu/call.h"
#include "cpu/products-inl.h"
#include "cpu/tokens-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// One token's log2 decay is cut here: nothing in fp32 is left behind it anyway, and a larger one
// would ruin the differences of running sums behind it.
inline constexpr double kMostLog2Decay = -300.0;

// dt' and the running decays of one head over one chunk.
HWY_NOINLINE void chunk_cumsum(const CpuCall& call, const Block& block, std::int64_t w,
                               std::int64_t head_in_block) {
  const Problem& problem = call.problem;
  const Buffers& buffers = call.buffers;
  const Chunk& chunk = block.scratch.chunk(w);
  const std::int64_t head = block.first_head + head_in_block;
  const auto row = [&](DecayRow which) { return block.scratch.decay(w, head_in_block, which); };
  float* dt = row(kDt);
  float* high = row(kCsHigh);
  float* low = row(kCsLow);
  float* factor = row(kFactor);

  load_row(problem.dt, buffers.dt.at(block.sequence.batch, chunk.begin, head),
           buffers.dt.strides[1], chunk.len, dt);
  const float bias =
      buffers.dt_bias ? load_scalar(*problem.dt_bias, buffers.dt_bias.at(head)) : 0.0f;
  const V lowest = hn::Set(f32, problem.dt_min);
  const V highest = hn::Set(f32, problem.dt_max);
  for (std::int64_t i = 0; i < chunk.len; i += lanes()) {
    V v = hn::Add(hn::LoadU(f32, dt + i), hn::Set(f32, bias));
    if (problem.dt_softplus) v = softplus(v);
    v = hn::IfThenElse(hn::Lt(v, lowest), lowest, v);  // comparisons, so that NaN stays NaN
    v = hn::IfThenElse(hn::Gt(v, highest), highest, v);
    hn::StoreU(v, f32, dt + i);
  }

  // In double: differences of cs stay exact however large cs grows inside the chunk.
  const double A = static_cast<double>(load_scalar(DType::kF32, buffers.A.at(head)));
  const double A_log2e = A * 1.4426950408889634;
  double cs = 0.0, least = 0.0;
  double dt_sum = 0.0;
  HeadSums& sums = block.scratch.sums(w, head_in_block);
  sums = HeadSums();
  for (std::int64_t i = 0; i < chunk.len; ++i) {
    const double log2_decay = dt[i] * A_log2e;
    const double step = log2_decay < kMostLog2Decay ? kMostLog2Decay : log2_decay;
    const double size = std::abs(static_cast<double>(dt[i]));
    dt_sum += dt[i];
    cs += step;
    sums.dt += size;
    sums.most_dt = std::max(sums.most_dt, size);
    least = std::min(least, cs);
    sums.most_log2_growth = std::max(sums.most_log2_growth, cs - least);
    factor[i] = static_cast<float>(step);
    high[i] = static_cast<float>(cs);
    low[i] = static_cast<float>(cs - high[i]);
  }
  sums.least_log2_decay = least;
  sums.log_decay = dt_sum * A;
  sums.log2_decay = cs;
  // Close to 1 the decay's distance from 1 is what must be exact: the same rounding chunk after
  // chunk would add up.
  if (cs > -1.0 && cs < 1.0) {
    sums.slow = true;
    sums.part = static_cast<float>(std::expm1(cs * 0.69314718055994531));
  }

  const auto store = [&](Factors factors, DecayRow first, DecayRow rest, std::int64_t i) HWY_ATTR {
    hn::StoreU(factors.first, f32, row(first) + i);
    hn::StoreU(factors.rest, f32, row(rest) + i);
  };
  const V one = hn::Set(f32, 1.0f);
  const V last_high = hn::Set(f32, high[chunk.len - 1]);
  const V last_low = hn::Set(f32, low[chunk.len - 1]);
  for (std::int64_t i = 0; i < chunk.len; i += lanes()) {
    const V h = hn::LoadU(f32, high + i);
    const V lo = hn::LoadU(f32, low + i);
    store(exp2_factors(h, lo), kDecayIn, kDecayInRest, i);
    store(exp2_factors(hn::LoadU(f32, factor + i), hn::Zero(f32)), kFactor, kFactorRest, i);
    // A dt' above 1 and one below meet the decay where they lead away from fp32's ends.
    const V dt_i = hn::LoadU(f32, dt + i);
    Factors weight = exp2_factors(hn::Sub(last_high, h), hn::Sub(last_low, lo));
    weight.first = hn::Mul(weight.first, hn::Max(one, dt_i));
    weight.rest = hn::Mul(weight.rest, hn::Min(one, dt_i));
    store(weight, kWeight, kWeightRest, i);
  }
  if (!sums.slow) sums.part = row(kDecayIn)[chunk.len - 1];
}

// What the heads of a block share of chunk w: B, C, C B^T and the decays.
template <class Products>
HWY_NOINLINE void prepare_chunk(const CpuCall& call, const Block& block, std::int64_t w,
                                const WorkerScratch& worker) {
  const CpuLayout& layout = call.layout;
  const Chunk& chunk = block.scratch.chunk(w);
  const bool recurrence = call.config.route == Route::kRecurrence;
  const auto load = [&](const Array& array, DType dtype, float* own) -> Operand {
    const Tokens tokens{array, dtype,   block.sequence.batch, chunk.begin, chunk.len, block.group,
                        0,     layout.n};
    if (recurrence && are_fp32_rows(tokens, layout.n16)) {
      const float* rows = reinterpret_cast<const float*>(tokens.at(0, 0));
      return {rows, largest_of(rows, chunk.len * layout.n16)};
    }
    return {own, load_tokens(tokens, own, layout.n16, worker)};
  };
  worker.operands(w) = {load(call.buffers.B, call.problem.B, worker.own_B(w)),
                        load(call.buffers.C, call.problem.C, worker.own_C(w))};
  if (!recurrence) {
    Products::pack_BC(layout, chunk.len, w, worker);
    multiply_CB<Products>(layout, block.scratch, w, worker);
  }
  for (std::int64_t head = 0; head < block.heads; ++head) chunk_cumsum(call, block, w, head);
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
