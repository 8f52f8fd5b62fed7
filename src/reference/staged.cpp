// The three steps of the chunked algorithm, in doubles, one chunk at a time. Per chunk, with cs the
// cumulative sum of dt' * A inside it:
//
//   y_i    = sum over j <= i of (C_i . B_j) exp(cs_i - cs_j) dt'_j x_j  +  exp(cs_i) S C_i
//   S_next = exp(cs_last) S + sum over j of exp(cs_last - cs_j) dt'_j x_j (outer) B_j
#include <algorithm>
#include <cmath>

#include "reference/routes.h"

namespace chunkscan::reference {

namespace {

// Below this a token's factor exp(dt' * A) is 0 in double. Sums are taken of the clamped values:
// one huge decay would otherwise swallow the differences behind it, an infinite one make them NaN.
constexpr double kZeroDecay = -800.0;

// A sum with the part that its last rounding lost (Knuth's two-sum). Clamped decays alone leave
// differences of large sums short of the 1e-12 that the two routes agree to.
struct Sum {
  double hi = 0.0, lo = 0.0;

  Sum plus(double v) const {
    const double total = hi + v;
    const double kept = total - hi;
    return {total, lo + ((hi - (total - kept)) + (v - kept))};
  }
  double value() const { return hi + lo; }
};

double minus(Sum a, Sum b) { return (a.hi - b.hi) + (a.lo - b.lo); }

struct ChunkData {
  Sum* cs;     // (q)
  double* dt;  // (q), dt'
  double* x;   // (q, p)
  double* B;   // (q, n)
  double* C;   // (q, n)
  double* S;   // (p, n), the state entering the chunk
};

ChunkData carve(const Problem& problem, std::int64_t q, double* scratch) {
  ChunkData data;
  data.S = scratch;
  data.B = data.S + problem.p * problem.n;
  data.C = data.B + q * problem.n;
  data.x = data.C + q * problem.n;
  data.dt = data.x + q * problem.p;
  data.cs = reinterpret_cast<Sum*>(data.dt + q);
  return data;
}

double dot(const double* u, const double* v, std::int64_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += u[i] * v[i];
  return sum;
}

// dt' and cs; returns the chunk's log decay, which is not clamped.
double chunk_cumsum(const Tensors& T, std::int64_t b, std::int64_t h, const Chunk& chunk,
                    const ChunkData& data) {
  const double A = T.A(h);
  Sum cs;
  double log_decay = 0.0;
  for (std::int64_t i = 0; i < chunk.len; ++i) {
    data.dt[i] = T.dt_prime(b, chunk.begin + i, h);
    const double step = data.dt[i] * A;
    cs = cs.plus(step < kZeroDecay ? kZeroDecay : step);
    data.cs[i] = cs;
    log_decay += step;
  }
  return log_decay;
}

void load_rows(const Tensors& T, std::int64_t b, std::int64_t h, const Chunk& chunk,
               const ChunkData& data) {
  const std::int64_t P = T.problem.p, N = T.problem.n, g = h / T.problem.heads_per_group();
  for (std::int64_t i = 0; i < chunk.len; ++i) {
    for (std::int64_t p = 0; p < P; ++p) data.x[i * P + p] = T.x(b, chunk.begin + i, h, p);
    for (std::int64_t n = 0; n < N; ++n) {
      data.B[i * N + n] = T.B(b, chunk.begin + i, g, n);
      data.C[i * N + n] = T.C(b, chunk.begin + i, g, n);
    }
  }
}

void compute_out(const Tensors& T, std::int64_t b, std::int64_t h, const Chunk& chunk,
                 const ChunkData& data, double* y /* (p) */) {
  const std::int64_t P = T.problem.p, N = T.problem.n;
  for (std::int64_t i = 0; i < chunk.len; ++i) {
    const double* C = data.C + i * N;
    const double decay = std::exp(data.cs[i].value());
    for (std::int64_t p = 0; p < P; ++p) y[p] = decay * dot(data.S + p * N, C, N);
    for (std::int64_t j = 0; j <= i; ++j) {
      const double weight =
          dot(C, data.B + j * N, N) * std::exp(minus(data.cs[i], data.cs[j])) * data.dt[j];
      for (std::int64_t p = 0; p < P; ++p) y[p] += weight * data.x[j * P + p];
    }
    for (std::int64_t p = 0; p < P; ++p) T.put_y(y[p], b, chunk.begin + i, h, p);
  }
}

void fwd_pass_state(const Problem& problem, const Chunk& chunk, const ChunkData& data) {
  const std::int64_t P = problem.p, N = problem.n;
  const Sum last = data.cs[chunk.len - 1];
  const double decay = std::exp(last.value());
  for (std::int64_t i = 0; i < P * N; ++i) data.S[i] *= decay;
  for (std::int64_t j = 0; j < chunk.len; ++j) {
    const double weight = std::exp(minus(last, data.cs[j])) * data.dt[j];
    for (std::int64_t p = 0; p < P; ++p) {
      const double scaled_x = weight * data.x[j * P + p];
      for (std::int64_t n = 0; n < N; ++n) data.S[p * N + n] += scaled_x * data.B[j * N + n];
    }
  }
}

}  // namespace

void staged(const Tensors& T, const Sequence& sequence, std::int64_t h, std::int64_t q,
            double* scratch) {
  const Problem& problem = T.problem;
  double* y = scratch;
  const ChunkData data = carve(problem, q, y + problem.p);
  double log_decay = 0.0;
  T.load_state(sequence, h, data.S);
  for (ChunkCursor cursor(problem, T.buffers, sequence, q); !cursor.done();) {
    const Chunk chunk = cursor.next();
    if (chunk.reset) std::fill_n(data.S, problem.p * problem.n, 0.0);
    load_rows(T, sequence.batch, h, chunk, data);
    log_decay += chunk_cumsum(T, sequence.batch, h, chunk, data);
    compute_out(T, sequence.batch, h, chunk, data, y);
    fwd_pass_state(problem, chunk, data);
    if (chunk.chunk_states_row >= 0) {
      T.put_chunk_state(data.S, sequence.batch, chunk.chunk_states_row, h);
    }
  }
  T.put_ends(sequence, h, data.S, log_decay);
}

std::int64_t staged_scratch(const Problem& problem, std::int64_t q) {
  constexpr std::int64_t kPerSum = sizeof(Sum) / sizeof(double);
  return problem.p + problem.p * problem.n + q * (2 * problem.n + problem.p + 1 + kPerSum);
}

}  // namespace chunkscan::reference
