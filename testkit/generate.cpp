#include "testkit/generate.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "op/element.h"

namespace chunkscan::testkit {

namespace {

constexpr std::int64_t kGap = 3;      // elements between rows, kPadded and kStrided
constexpr std::int64_t kSpacing = 2;  // from element to element, kStrided

// Streams of random numbers, one a tensor.
enum class Stream : std::uint64_t { kX, kDt, kA, kB, kC, kD, kZ, kDtBias, kInitialStates };

std::uint64_t seed_of(const CaseSpec& spec, Stream stream) {
  return spec.seed * 16 + static_cast<std::uint64_t>(stream);
}

template <typename Value>
void fill_with(const TensorView& view, Value&& value) {
  std::uint64_t i = 0;
  for_each_element(
      view, [&](Index, std::byte* address) { store_element(view.dtype, address, value(i++)); });
}

void fill_normal(const TensorView& view, std::uint64_t seed) {
  fill_with(view, [seed](std::uint64_t i) { return normal_at(seed, i); });
}

void fill_uniform(const TensorView& view, std::uint64_t seed, float low, float high) {
  fill_with(view, [=](std::uint64_t i) { return low + (high - low) * uniform_at(seed, i); });
}

}  // namespace

std::vector<TensorView> views_of(const Outputs& outputs) {
  std::vector<TensorView> views;
  for (const OutputField& field : kOutputs) views.push_back(outputs.*field.view);
  return views;
}

CaseSpec sized(std::int64_t l, std::int64_t h, std::int64_t g, std::int64_t p, std::int64_t n) {
  CaseSpec spec;
  spec.l = l;
  spec.h = h;
  spec.g = g;
  spec.p = p;
  spec.n = n;
  return spec;
}

Case::Case(const CaseSpec& wanted) : spec(wanted) {
  const auto [b, l, h, p, n, g] = std::array{spec.b, spec.l, spec.h, spec.p, spec.n, spec.g};
  const auto dtype_or_x = [this](std::optional<DType> dtype) { return dtype.value_or(spec.dtype); };
  if (spec.layout == Layout::kFused) allocate_fused();
  const auto place = [this](TensorView& view, DType dtype,
                            std::initializer_list<std::int64_t> shape) {
    if (!view.present()) view = allocate(dtype, shape, along_tokens(view));
  };
  place(inputs.x, spec.dtype, {b, l, h, p});
  place(inputs.dt, dtype_or_x(spec.dt_dtype), {b, l, h});
  place(inputs.A, DType::kF32, {h});
  place(inputs.B, dtype_or_x(spec.B_dtype), {b, l, g, n});
  place(inputs.C, dtype_or_x(spec.C_dtype), {b, l, g, n});
  if (spec.D == DForm::kHead) place(inputs.D, spec.D_dtype, {h});
  if (spec.D == DForm::kHeadDim) place(inputs.D, spec.D_dtype, {h, p});
  if (spec.z) place(inputs.z, dtype_or_x(spec.z_dtype), {b, l, h, p});
  if (spec.dt_bias) place(inputs.dt_bias, spec.dt_bias_dtype, {h});
  place(outputs.y, spec.dtype, {b, l, h, p});

  const auto s = static_cast<std::int64_t>(spec.lengths.size());
  if (spec.packed_by == PackedBy::kSeqIdx) place(inputs.seq_idx, DType::kI32, {b, l});
  if (spec.packed_by == PackedBy::kCuSeqlens) {
    place(inputs.cu_seqlens, spec.cu_seqlens_64 ? DType::kI64 : DType::kI32, {s + 1});
  }
  const std::int64_t states = spec.packed_by == PackedBy::kCuSeqlens ? s : b;
  if (spec.initial_states) place(inputs.initial_states, *spec.initial_states, {states, h, p, n});
  if (spec.in_place) {
    outputs.final_states = inputs.initial_states;
  } else if (spec.final_states) {
    place(outputs.final_states, *spec.final_states, {states, h, p, n});
  }
  if (spec.chunk_states) {
    place(outputs.chunk_states, *spec.chunk_states, {b, l / spec.state_every, h, p, n});
  }
  if (spec.log_decay) place(outputs.log_decay, DType::kF32, {states, h});

  options.dt_softplus = spec.softplus;
  options.dt_min = spec.dt_min;
  options.dt_max = spec.dt_max;
  options.state_every = spec.state_every;
  standard_data = l >= 1024 && h >= 8 && spec.softplus && spec.dt_bias && spec.dt_min == 0.0f &&
                  std::isinf(spec.dt_max);
  fill_values();
  fill_packing();
}

bool Case::along_tokens(const TensorView& view) const {
  const bool all = spec.layout == Layout::kTokens;
  if (&view == &inputs.x || &view == &inputs.z || &view == &outputs.y) {
    return all || spec.layout == Layout::kTokensX;
  }
  if (&view == &inputs.B || &view == &inputs.C) return all || spec.layout == Layout::kTokensBC;
  return all && &view == &inputs.dt;
}

TensorView Case::allocate(DType dtype, std::initializer_list<std::int64_t> shape,
                          bool along_tokens) {
  TensorView view(nullptr, dtype, shape);
  if (along_tokens) {
    view.strides[1] = 1;
    std::int64_t stride = view.shape[1];
    for (int i = view.rank - 1; i >= 0; --i) {
      if (i == 1) continue;
      view.strides[i] = stride;
      stride *= view.shape[i];
    }
  }
  std::int64_t room = view.elements(), start = 0;
  if (spec.layout == Layout::kPadded || spec.layout == Layout::kStrided) {
    std::int64_t stride = spec.layout == Layout::kStrided ? kSpacing : 1;
    for (int i = view.rank - 1; i >= 0; --i) {
      view.strides[i] = stride;
      stride = stride * view.shape[i] + kGap;
    }
    start = 1;
    room = stride + start;
  }
  if (spec.layout == Layout::kReversed && room > 0) {
    for (std::int64_t& stride : view.strides) stride = -stride;
    start = room - 1;
  }
  const std::size_t bytes = size_of(dtype);
  view.data = blocks_.emplace_back(static_cast<std::size_t>(room) * bytes).data() + start * bytes;
  return view;
}

// The columns of Mamba-2's input projection, and y behind them.
void Case::allocate_fused() {
  struct Column {
    TensorView* view;
    bool wanted;
    std::int64_t outer, inner;  // inner == 0: one dimension
  };
  const auto as_x = [this](std::optional<DType> dtype) {
    return dtype.value_or(spec.dtype) == spec.dtype;
  };
  const Column columns[] = {
      {&inputs.z, spec.z && as_x(spec.z_dtype), spec.h, spec.p},
      {&inputs.x, true, spec.h, spec.p},
      {&inputs.B, as_x(spec.B_dtype), spec.g, spec.n},
      {&inputs.C, as_x(spec.C_dtype), spec.g, spec.n},
      {&inputs.dt, as_x(spec.dt_dtype), spec.h, 0},
      {&outputs.y, true, spec.h, spec.p},
  };
  std::int64_t width = 0;
  for (const Column& c : columns)
    width += c.wanted ? c.outer * std::max<std::int64_t>(c.inner, 1) : 0;
  const std::size_t bytes = size_of(spec.dtype);
  std::byte* at =
      blocks_.emplace_back(static_cast<std::size_t>(spec.b * spec.l * width) * bytes).data();
  for (const Column& c : columns) {
    if (!c.wanted) continue;
    if (c.inner > 0) {
      *c.view = TensorView(at, spec.dtype, {spec.b, spec.l, c.outer, c.inner},
                           {spec.l * width, width, c.inner, 1});
    } else {
      *c.view = TensorView(at, spec.dtype, {spec.b, spec.l, c.outer}, {spec.l * width, width, 1});
    }
    at += static_cast<std::size_t>(c.outer * std::max<std::int64_t>(c.inner, 1)) * bytes;
  }
}

void Case::fill_values() {
  const auto seed = [this](Stream stream) { return seed_of(spec, stream); };
  fill_normal(inputs.x, seed(Stream::kX));
  fill_normal(inputs.B, seed(Stream::kB));
  fill_normal(inputs.C, seed(Stream::kC));
  fill_normal(inputs.D, seed(Stream::kD));
  fill_normal(inputs.z, seed(Stream::kZ));
  fill_normal(inputs.initial_states, seed(Stream::kInitialStates));
  fill_with(inputs.A,
            [s = seed(Stream::kA)](std::uint64_t i) { return -std::exp(2.7f * uniform_at(s, i)); });
  fill_with(inputs.dt, [this, s = seed(Stream::kDt)](std::uint64_t i) {
    constexpr float kMeanBias = -3.5f;
    const float v = normal_at(s, i);
    if (!spec.softplus) return std::exp(v + kMeanBias);
    return spec.dt_bias ? v : v + kMeanBias;
  });
  if (spec.softplus) {
    fill_uniform(inputs.dt_bias, seed(Stream::kDtBias), -4.0f, -3.0f);
  } else {
    fill_uniform(inputs.dt_bias, seed(Stream::kDtBias), 0.0f, 0.01f);
  }
}

void Case::fill_packing() {
  std::int64_t total = 0;
  for (std::int64_t length : spec.lengths) total += length;
  if (total > spec.l) throw std::invalid_argument("lengths add up to more than l");
  if (inputs.cu_seqlens.present()) {
    std::int64_t offset = 0;
    set(inputs.cu_seqlens, {0}, 0);
    for (std::size_t i = 0; i < spec.lengths.size(); ++i) {
      offset += spec.lengths[i];
      set(inputs.cu_seqlens, {static_cast<std::int64_t>(i) + 1}, static_cast<double>(offset));
    }
  }
  if (inputs.seq_idx.present()) {
    // The first value is not 0, and values come back in sequences that do not touch.
    fill(inputs.seq_idx, [this](Index index) {
      std::int64_t end = 0;
      std::size_t i = 0;
      while (i + 1 < spec.lengths.size() && index[1] >= (end += spec.lengths[i])) ++i;
      return i % 2 == 0 ? 5.0 : 2.0;
    });
  }
}

void Case::poison_outputs() {
  poison(outputs.y);
  if (spec.in_place) {
    fill_normal(inputs.initial_states, seed_of(spec, Stream::kInitialStates));
  } else {
    poison(outputs.final_states);
  }
  poison(outputs.chunk_states);
  poison(outputs.log_decay);
}

std::uint64_t Case::digest_outside_outputs() const {
  constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325u, kFnvPrime = 0x100000001b3u;
  std::uint64_t digest = kFnvOffset;
  for (const Block& block : blocks_) {
    Block masked(block.size());
    std::memcpy(masked.data(), block.data(), block.size());
    for (TensorView view : views_of(outputs)) {
      const auto offset = reinterpret_cast<std::uintptr_t>(view.data) -
                          reinterpret_cast<std::uintptr_t>(block.data());
      if (!view.present() || offset >= block.size()) continue;
      view.data = masked.data() + offset;
      poison(view);
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      digest = (digest ^ static_cast<std::uint64_t>(masked.data()[i])) * kFnvPrime;
    }
  }
  return digest;
}

}  // namespace chunkscan::testkit
