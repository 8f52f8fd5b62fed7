#include "slots.h"

namespace chunkscan {

namespace {

constexpr DTypes kFloats = bit(DType::kF32) | bit(DType::kBF16) | bit(DType::kF16);

}  // namespace

std::array<Slot, kSlots> slots_of(const Problem& k, const Inputs& in, const Outputs& out,
                                  bool wide) {
  const bool packed = k.packing == Packing::kCuSeqlens;
  const char* states = packed ? "(s, h, p, n)" : "(b, h, p, n)";
  const DTypes f32_or_x = bit(DType::kF32) | bit(k.x);
  const DTypes f64 = wide ? bit(DType::kF64) : 0;
  const DTypes seq_idx = k.packing == Packing::kSeqIdx ? bit(DType::kI32) : 0;
  const DTypes cu_seqlens = packed ? bit(k.cu_seqlens_64 ? DType::kI64 : DType::kI32) : 0;
  const std::int64_t s = k.sequences;
  const std::int64_t rows = k.state_every > 0 ? k.l / k.state_every : 0;
  const auto planned = [](std::optional<DType> dtype) { return dtype ? bit(*dtype) : 0; };
  return {{
      {"x", &in.x, "(b, l, h, p)", 4, {k.b, k.l, k.h, k.p}, kFloats, bit(k.x)},
      {"dt", &in.dt, "(b, l, h)", 3, {k.b, k.l, k.h}, kFloats, bit(k.dt)},
      {"A", &in.A, "(h)", 1, {k.h}, bit(DType::kF32), bit(DType::kF32)},
      {"B", &in.B, "(b, l, g, n)", 4, {k.b, k.l, k.g, k.n}, kFloats, bit(k.B)},
      {"C", &in.C, "(b, l, g, n)", 4, {k.b, k.l, k.g, k.n}, kFloats, bit(k.C)},
      {"D",
       &in.D,
       k.D_per_head_dim ? "(h, p)" : "(h)",
       k.D_per_head_dim ? 2 : 1,
       {k.h, k.p},
       f32_or_x,
       planned(k.D)},
      {"z", &in.z, "(b, l, h, p)", 4, {k.b, k.l, k.h, k.p}, kFloats, planned(k.z)},
      {"dt_bias", &in.dt_bias, "(h)", 1, {k.h}, f32_or_x, planned(k.dt_bias)},
      {"initial_states",
       &in.initial_states,
       states,
       4,
       {s, k.h, k.p, k.n},
       kFloats,
       planned(k.initial_states)},
      {"seq_idx", &in.seq_idx, "(b, l)", 2, {k.b, k.l}, bit(DType::kI32), seq_idx},
      {"cu_seqlens",
       &in.cu_seqlens,
       "(s + 1)",
       1,
       {s + 1},
       bit(DType::kI32) | bit(DType::kI64),
       cu_seqlens},
      {"y", &out.y, "(b, l, h, p)", 4, {k.b, k.l, k.h, k.p}, bit(k.x) | f64, bit(k.y), true},
      {"final_states",
       &out.final_states,
       states,
       4,
       {s, k.h, k.p, k.n},
       kFloats | f64,
       planned(k.final_states),
       true},
      {"chunk_states",
       &out.chunk_states,
       "(b, l / state_every, h, p, n)",
       5,
       {k.b, rows, k.h, k.p, k.n},
       kFloats | f64,
       planned(k.chunk_states),
       true},
      {"log_decay",
       &out.log_decay,
       packed ? "(s, h)" : "(b, h)",
       2,
       {s, k.h},
       bit(DType::kF32) | f64,
       planned(k.log_decay),
       true},
  }};
}

std::string dtypes_text(DTypes dtypes) {
  std::string text;
  for (DType dtype :
       {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kI64}) {
    if (dtypes & bit(dtype)) text += (text.empty() ? "" : " | ") + std::string(name_of(dtype));
  }
  return text;
}

std::string sizes_text(const std::int64_t* values, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + ")";
}

std::string shape_text(const TensorView& view) {
  if (!view.present()) return "none";
  if (view.rank > kMaxRank) return std::to_string(view.rank) + " dimensions";
  return sizes_text(view.shape.data(), view.rank);
}

std::string strides_text(const TensorView& view) {
  return "strides " + sizes_text(view.strides.data(), view.rank) + " with shape " +
         shape_text(view);
}

}  // namespace chunkscan
