// The operation: the forward pass of Mamba-2's state-space duality (SSD) layer.
//
// Per batch and head, for t = 0, 1, ... (Dao and Gu 2024, "Transformers are SSMs", section 6, with
// the conventions of mamba_ssm):
//
//   dt'_t = clamp(softplus?(dt_t + dt_bias_h), dt_min, dt_max)
//   a_t   = exp(dt'_t * A_h)
//   S_t   = a_t * S_{t-1} + dt'_t * x_t (outer) B_t        S: (p, n), S_{-1} = initial state or 0
//   y_t   = S_t C_t + D_h * x_t
//   y_t   = y_t * silu(z_t)                                where z is given
//
// Letters: b batch, l tokens, h heads, g groups of B and C (head i reads group i / (h / g)),
// p head dimension, n state size, s packed sequences, q chunk length (a blocking choice).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "chunkscan/tensor.h"

namespace chunkscan {

// "16-bit or f32" below means any of bf16, f16, f32; every mix of them across tensors works.
struct Inputs {
  TensorView x;   // (b, l, h, p), 16-bit or f32
  TensorView dt;  // (b, l, h), 16-bit or f32; raw: before bias, softplus and clamp
  TensorView A;   // (h), f32; negative for a decaying state, positive is legal and grows
  TensorView B;   // (b, l, g, n), 16-bit or f32
  TensorView C;   // (b, l, g, n), 16-bit or f32

  // Optional; a default-constructed view leaves it out.
  TensorView D;               // (h) or (h, p), f32 or x's dtype: the skip connection
  TensorView z;               // (b, l, h, p), 16-bit or f32: the gate, y * silu(z)
  TensorView dt_bias;         // (h), f32 or x's dtype
  TensorView initial_states;  // (b, h, p, n), packed (s, h, p, n); 16-bit or f32
  // (b, l) i32: a run of equal values is one sequence; every change resets the state. The initial
  // state enters each row's first run, the final state is its last run's.
  TensorView seq_idx;
  // (s + 1) i32 or i64, needs b == 1: sequence i is tokens [cu_seqlens[i], cu_seqlens[i + 1]).
  // Starts at 0, never decreases (empty sequences are legal), ends at most at l. Rows of y outside
  // every sequence are written 0.
  TensorView cu_seqlens;
};

// Caller-owned, any strides that nest: each steps over all that the smaller ones reach, so that no
// element lies on another. Outputs overlap neither an input nor each other. The one exception:
// final_states may be the very view that initial_states is.
struct Outputs {
  TensorView y;  // (b, l, h, p), x's dtype; required. f64 too with the reference backend
  // Optional; a default-constructed view leaves it out.
  TensorView final_states;  // (b, h, p, n), packed (s, h, p, n); f32, bf16, f16 (reference: f64)
  // State after every `state_every` = K tokens counted from each sequence's own start:
  // (b, l / K, h, p, n), packed (1, l / K, h, p, n), division rounded down; same dtypes. Packed,
  // sequence i's rows start at the sum over j < i of len_j / K; later rows are written 0.
  // Not together with seq_idx.
  TensorView chunk_states;
  // (b, h), packed (s, h), f32 (reference: f64): the sum of dt' * A over the sequence. Not together
  // with seq_idx.
  TensorView log_decay;
};

struct Options {
  bool dt_softplus = false;  // dt' = log1p(exp(dt + dt_bias)) instead of dt + dt_bias
  float dt_min = 0.0f;       // clamp of dt', after softplus
  float dt_max = std::numeric_limits<float>::infinity();
  std::int64_t state_every = 0;  // K of chunk_states; needed with it, refused without
  std::int64_t chunk_size = 0;   // q wanted; 0 lets the library choose. Never changes the result
                                 // beyond rounding, and the plan says which q it uses
  // Bits of a sequence's result independent of its batch mates and of what follows it.
  bool batch_invariant = false;
  // On a GPU: also check the contents of cu_seqlens and seq_idx, at the price of one
  // synchronisation. On the CPU they are always checked.
  bool check_contents = false;
  int threads = 0;           // CPU threads; 0 = OpenMP's default. A forked child always uses 1
  std::string backend = {};  // "" = the best one that can; else a name from backends(), or "cuda"
  // "" = the device of the tensors; else a GPU architecture ("sm_90a") to plan for without having
  // one. Such a plan prints and can be packed (pack.h), but does not run.
  std::string architecture = {};
  std::string config = {};  // "" = the backend's default; else what a Plan printed
};

}  // namespace chunkscan
