#include <algorithm>
#include <cmath>

#include "reference/routes.h"

namespace chunkscan::reference {

void recurrence(const Tensors& T, const Sequence& sequence, std::int64_t h, double* scratch) {
  const std::int64_t P = T.problem.p, N = T.problem.n, K = T.problem.state_every;
  const std::int64_t b = sequence.batch, g = h / T.problem.heads_per_group();
  const bool resets = T.problem.packing == Packing::kSeqIdx;
  const Tensor seq_idx(T.buffers.seq_idx, DType::kI32);
  double* S = scratch;    // (p, n)
  double* B = S + P * N;  // (n), of token t
  double* C = B + N;      // (n), of token t
  double log_decay = 0.0;

  T.load_state(sequence, h, S);
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    if (resets && t > sequence.begin && seq_idx(b, t) != seq_idx(b, t - 1)) {
      std::fill_n(S, P * N, 0.0);
    }
    for (std::int64_t n = 0; n < N; ++n) {
      B[n] = T.B(b, t, g, n);
      C[n] = T.C(b, t, g, n);
    }
    const double dt = T.dt_prime(b, t, h);
    const double a = std::exp(dt * T.A(h));
    log_decay += dt * T.A(h);
    for (std::int64_t p = 0; p < P; ++p) {
      double* S_row = S + p * N;
      const double dt_x = dt * T.x(b, t, h, p);
      double y = 0.0;
#pragma omp simd reduction(+ : y)
      for (std::int64_t n = 0; n < N; ++n) {
        S_row[n] = a * S_row[n] + dt_x * B[n];
        y += S_row[n] * C[n];
      }
      T.put_y(y, b, t, h, p);
    }
    const std::int64_t done = t + 1 - sequence.begin;
    if (K > 0 && done % K == 0) {
      T.put_chunk_state(S, b, sequence.chunk_states_row + done / K - 1, h);
    }
  }
  T.put_ends(sequence, h, S, log_decay);
}

std::int64_t recurrence_scratch(const Problem& problem) {
  return problem.p * problem.n + 2 * problem.n;
}

}  // namespace chunkscan::reference
