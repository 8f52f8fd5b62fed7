// Every tensor of a call beside the rules that it has to keep: one table for all checks.
#pragma once

#include <array>
#include <string>

#include "chunkscan/ssd.h"
#include "op/problem.h"

namespace chunkscan {

// A set of dtypes, one bit each.
using DTypes = unsigned;
constexpr DTypes bit(DType dtype) {  // none for a value that is no dtype
  return dtype <= DType::kI64 ? 1u << static_cast<unsigned>(dtype) : 0u;
}

struct Slot {
  const char* name;
  const TensorView* view;
  const char* letters;
  int rank;
  std::array<std::int64_t, kMaxRank> shape;
  DTypes legal;
  DTypes planned;  // the problem's own; none where the tensor is absent from it
  bool output = false;
};

constexpr int kSlots = 15;

// The sizes, dtypes and presence are the problem's. `wide`: f64 outputs are legal, which the
// reference backend alone has.
std::array<Slot, kSlots> slots_of(const Problem& problem, const Inputs& inputs,
                                  const Outputs& outputs, bool wide);

// "f32 | bf16".
std::string dtypes_text(DTypes dtypes);

// "(2, 64, 4)"; "none" for an absent view.
std::string shape_text(const TensorView& view);

// "strides (256, 4, 1) with shape (2, 64, 4)".
std::string strides_text(const TensorView& view);

std::string sizes_text(const std::int64_t* values, int count);

}  // namespace chunkscan
