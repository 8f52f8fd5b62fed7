// Makes calls of the operation: sizes and features in, tensors of random numbers out.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "testkit/outputs.h"
#include "testkit/tensors.h"

namespace chunkscan::testkit {

enum class Layout {
  kContiguous,
  kFused,     // x, z, B, C, dt and y (those of x's dtype) are column slices of one buffer
  kPadded,    // gaps behind the rows of every dimension; the start is off by one element
  kStrided,   // the same, and elements two apart
  kReversed,  // all strides negative
  kTokens,    // x, z, B, C, dt and y are contiguous along tokens
  kTokensX,   // of these, x, z and y
  kTokensBC,  // of these, B and C
};

enum class DForm { kNone, kHead, kHeadDim };

enum class PackedBy { kNothing, kSeqIdx, kCuSeqlens };

struct CaseSpec {
  std::int64_t b = 1, l = 64, h = 4, p = 16, n = 16, g = 1;
  DType dtype = DType::kF32;  // of x, and of dt, B, C, z where they have none of their own below
  std::optional<DType> dt_dtype, B_dtype, C_dtype, z_dtype;
  DType D_dtype = DType::kF32, dt_bias_dtype = DType::kF32;

  DForm D = DForm::kHead;
  bool z = false;
  bool dt_bias = true;
  bool softplus = true;
  float dt_min = 0.0f;
  float dt_max = std::numeric_limits<float>::infinity();

  // Absent without a dtype.
  std::optional<DType> initial_states, final_states, chunk_states;
  std::int64_t state_every = 0;  // K of chunk_states
  bool log_decay = false;
  bool in_place = false;  // final_states is the very view that initial_states is

  // Lengths of the sequences of every row. What is left of l belongs to the last one with kSeqIdx,
  // to none with kCuSeqlens.
  PackedBy packed_by = PackedBy::kNothing;
  std::vector<std::int64_t> lengths;
  bool cu_seqlens_64 = false;

  Layout layout = Layout::kContiguous;
  std::uint64_t seed = 1;
};

// The defaults with these sizes.
CaseSpec sized(std::int64_t l, std::int64_t h, std::int64_t g, std::int64_t p, std::int64_t n);

// x, B, C, z, dt, D, initial states ~ N(0,1), dt_bias ~ U(-4,-3), A = -exp(U(0, 2.7)). Where bias
// or softplus are left out, dt is drawn so that dt' is about as large. A value depends on the seed,
// the tensor and the element's index alone, rounded to the dtype. Memory that belongs to no
// element, and every output, holds NaN bytes.
class Case {
 public:
  explicit Case(const CaseSpec& spec);

  CaseSpec spec;
  Inputs inputs;
  Outputs outputs;
  Options options;

  // Whether the bounds of standard data hold (compare.h): l >= 1024, h >= 8, bias, softplus, no
  // limits. Whoever replaces values clears it.
  bool standard_data = false;

  // Fills the outputs with NaN bytes. An in-place final state gets initial values instead.
  void poison_outputs();

  // A hash of every byte of the case's memory that belongs to no output: the same before and after
  // a call that writes only where it should.
  std::uint64_t digest_outside_outputs() const;

 private:
  TensorView allocate(DType dtype, std::initializer_list<std::int64_t> shape, bool along_tokens);
  bool along_tokens(const TensorView& view) const;
  void allocate_fused();
  void fill_values();
  void fill_packing();

  std::vector<Block> blocks_;
};

// The four outputs, absent ones too.
std::vector<TensorView> views_of(const Outputs& outputs);

}  // namespace chunkscan::testkit
