// What the two reference routes share: every tensor as doubles, and the parts of the formula that
// know nothing of chunks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "op/buffers.h"
#include "op/element.h"
#include "op/problem.h"
#include "op/sequences.h"

namespace chunkscan::reference {

// A tensor whose elements read and write as doubles, rounded once to its dtype.
class Tensor {
 public:
  Tensor(const Array& array, std::optional<DType> dtype)
      : array_(array), dtype_(dtype.value_or(DType::kF32)), present_(dtype.has_value()) {}

  bool present() const { return present_; }

  template <typename... Index>
  double operator()(Index... index) const {
    return load_element(dtype_, array_.at(index...));
  }

  template <typename... Index>
  void set(double value, Index... index) const {
    store_element(dtype_, array_.at(index...), value);
  }

 private:
  Array array_;
  DType dtype_;
  bool present_;
};

inline double softplus(double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v))); }

inline double silu(double v) { return v / (1.0 + std::exp(-v)); }

struct Tensors {
  Tensors(const Problem& k, const Buffers& a)
      : problem(k),
        buffers(a),
        x(a.x, k.x),
        dt(a.dt, k.dt),
        A(a.A, DType::kF32),
        B(a.B, k.B),
        C(a.C, k.C),
        D(a.D, k.D),
        z(a.z, k.z),
        dt_bias(a.dt_bias, k.dt_bias),
        initial_states(a.initial_states, k.initial_states),
        y(a.y, k.y),
        final_states(a.final_states, k.final_states),
        chunk_states(a.chunk_states, k.chunk_states),
        log_decay(a.log_decay, k.log_decay) {}

  const Problem& problem;
  const Buffers& buffers;
  Tensor x, dt, A, B, C, D, z, dt_bias, initial_states;
  Tensor y, final_states, chunk_states, log_decay;

  // dt' of token t. A NaN stays one: every comparison in the clamp is false.
  double dt_prime(std::int64_t b, std::int64_t t, std::int64_t h) const {
    double v = dt(b, t, h);
    if (dt_bias.present()) v += dt_bias(h);
    if (problem.dt_softplus) v = softplus(v);
    return std::clamp<double>(v, problem.dt_min, problem.dt_max);
  }

  // Adds the skip connection to `y_value` = S_t C_t, gates it and stores it.
  void put_y(double y_value, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t p) const {
    if (D.present()) {
      y_value += (problem.D_per_head_dim ? D(h, p) : D(h)) * x(b, t, h, p);
    }
    if (z.present()) y_value *= silu(z(b, t, h, p));
    y.set(y_value, b, t, h, p);
  }

  void load_state(const Sequence& sequence, std::int64_t h, double* S) const {
    for (std::int64_t p = 0; p < problem.p; ++p) {
      for (std::int64_t n = 0; n < problem.n; ++n) {
        *S++ = initial_states.present() ? initial_states(sequence.state, h, p, n) : 0.0;
      }
    }
  }

  void put_chunk_state(const double* S, std::int64_t b, std::int64_t row, std::int64_t h) const {
    for (std::int64_t p = 0; p < problem.p; ++p) {
      for (std::int64_t n = 0; n < problem.n; ++n) chunk_states.set(*S++, b, row, h, p, n);
    }
  }

  void put_ends(const Sequence& sequence, std::int64_t h, const double* S, double decay) const {
    if (final_states.present()) {
      for (std::int64_t p = 0; p < problem.p; ++p) {
        for (std::int64_t n = 0; n < problem.n; ++n) {
          final_states.set(*S++, sequence.state, h, p, n);
        }
      }
    }
    if (log_decay.present()) log_decay.set(decay, sequence.state, h);
  }
};

}  // namespace chunkscan::reference
