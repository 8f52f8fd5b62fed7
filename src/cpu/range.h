// Whether a chunk's products stay inside fp32 on their way to a y and a state that do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cpu/call.h"

namespace chunkscan {

// The largest magnitudes of what a chunk multiplies. `log2_decay` is its smallest running sum,
// `log2_growth` the largest rise of it.
struct Magnitudes {
  double B, C, x, dt, state, log2_decay, log2_growth;
};

// 0, or far enough from both ends of fp32's normal numbers.
inline bool fits(double v) { return v == 0.0 || (v > 1e-30 && v < 1e37); }

// Otherwise y and the state are worked out token by token: the state decays before it meets C, and
// dt' goes to x or B, whichever takes it (dt_belongs_to_B).
inline bool products_fit(const Magnitudes& most, std::int64_t n) {
  const double growth = std::exp2(most.log2_growth);  // 1 where A <= 0
  const double CB = most.B * most.C * static_cast<double>(n);
  const double state_C = most.state * most.C * static_cast<double>(n);
  // What a decay takes below fp32's normal numbers is missed where a huge factor meets it.
  const double decay = std::exp2(most.log2_decay);
  const auto sinks = [&](double v, double factor) {
    return factor > 1e7 && v != 0.0 && v * decay < 1e-37;
  };
  return fits(CB) && fits(CB * most.dt) && fits(most.x * most.dt) && state_C * growth < 1e37 &&
         CB * most.dt * growth < 1e37 && most.x * most.dt * growth < 1e37 &&
         !sinks(CB * std::min(most.dt, 1.0), most.x) &&
         !sinks(most.x * std::min(most.dt, 1.0), most.B);
}

inline bool dt_belongs_to_B(double most_x, float dt) {
  return !fits(most_x * std::abs(static_cast<double>(dt)));
}

inline double most_of(const float* row, std::int64_t count) {
  float most = 0.0f;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(row[i]));
  return static_cast<double>(most);
}

// What is known of the state entering chunk w; notes the same of the one that leaves it. `most_x`
// is of the chunk and the whole head, whatever the slice, so that slices decide alike.
inline Carried enter_chunk(const BlockScratch& scratch, std::int64_t w, std::int64_t head,
                           bool has_state, double most_x, const WorkerScratch& worker) {
  const HeadSums& sums = scratch.sums(w, head);
  Carried& carried = scratch.carried(head);
  const Carried entering = has_state ? carried : Carried();
  const double added = sums.dt * most_x * static_cast<double>(worker.operands(w).B.most);
  carried.most = std::exp2(sums.log2_decay) * entering.most +
                 std::exp2(sums.log2_decay - sums.least_log2_decay) * added;
  carried.slow = sums.slow;
  carried.lost = false;
  return entering;
}

// How many of chunk w's tokens can go the chunked way: usually all. A token's B, C and dt' decide
// nothing for the tokens before it.
inline std::int64_t chunked_tokens(const CpuCall& call, const BlockScratch& scratch, std::int64_t w,
                                   std::int64_t head, double most_x, double state,
                                   const WorkerScratch& worker) {
  const std::int64_t n = call.layout.n;
  const std::int64_t len = scratch.chunk(w).len;
  const HeadSums& sums = scratch.sums(w, head);
  const Operands& operands = worker.operands(w);
  if (products_fit({operands.B.most, operands.C.most, most_x, sums.most_dt, state,
                    sums.least_log2_decay, sums.most_log2_growth},
                   n)) {
    return len;
  }
  Magnitudes first{0.0, 0.0, most_x, 0.0, state, 0.0, 0.0};
  for (std::int64_t t = 0; t < len; ++t) {
    const double dt = scratch.decay(w, head, kDt)[t];
    const double log2_decay = scratch.decay(w, head, kCsHigh)[t];
    first.B = std::max(first.B, most_of(worker.B(w) + t * call.layout.n16, n));
    first.C = std::max(first.C, most_of(worker.C(w) + t * call.layout.n16, n));
    first.dt = std::max(first.dt, std::abs(dt));
    first.log2_decay = std::min(first.log2_decay, log2_decay);
    first.log2_growth = std::max(first.log2_growth, log2_decay - first.log2_decay);
    if (!products_fit(first, n)) return t;
  }
  return len;
}

}  // namespace chunkscan
