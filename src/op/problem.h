// What is to be computed: sizes, dtypes and flags of one call. No pointers, no strides.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "chunkscan/tensor.h"
#include "op/alignment.h"

namespace chunkscan {

enum class Packing : std::uint8_t { kNone, kSeqIdx, kCuSeqlens };

struct Problem {
  std::int64_t b = 0, l = 0, h = 0, g = 0, p = 0, n = 0;
  std::int64_t sequences = 0;  // with states of their own: s when packed by cu_seqlens, else b
  Packing packing = Packing::kNone;
  bool cu_seqlens_64 = false;
  bool D_per_head_dim = false;

  // nullopt = absent
  DType x = DType::kF32, dt = DType::kF32, B = DType::kF32, C = DType::kF32, y = DType::kF32;
  std::optional<DType> D, z, dt_bias, initial_states, final_states, chunk_states, log_decay;

  std::int64_t state_every = 0;  // K, 0 = no chunk_states
  std::int64_t chunk_size = 0;   // q wanted, 0 = the backend's choice
  bool batch_invariant = false;
  bool dt_softplus = false;
  float dt_min = 0.0f;
  float dt_max = std::numeric_limits<float>::infinity();

  Alignment alignment;  // of no interest on the CPU

  std::int64_t heads_per_group() const { return h / g; }

  friend bool operator==(const Problem&, const Problem&) = default;
};

// One line: "b1 l2048 h24 p64 n128 g1 x:bf16 ... D:f32 z:bf16 softplus", what is absent left out.
std::string to_string(const Problem& problem);

}  // namespace chunkscan
