#include "validate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "chunkscan/memory.h"
#include "op/overlap.h"
#include "op/sentence.h"
#include "op/sequences.h"
#include "slots.h"

namespace chunkscan {

namespace {

constexpr std::int64_t kMaxHeadDim = 512;
constexpr std::int64_t kMaxStateSize = 512;
constexpr int kMaxThreads = 1024;  // GNU OpenMP ends the process where it cannot start a thread
// Far above any memory, and low enough that no sum of a few of them wraps.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;

std::string device_text(Device device) {
  return device.kind == DeviceKind::kCpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::string number_text(float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string hexadecimal(const void* address) {
  char text[20];
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return "0x" + std::string(text, std::to_chars(text, text + sizeof text, number, 16).ptr);
}

// A view with no rank is an absent one; below that there is only a mistake.
void require_rank(const Slot& slot) {
  if (slot.view->rank >= 0) return;
  refuse_input(slot.name, "a rank of at least 0", std::to_string(slot.view->rank));
}

void require_shape(const Slot& slot) {
  const TensorView& view = *slot.view;
  if (view.rank == slot.rank &&
      std::equal(view.shape.begin(), view.shape.begin() + slot.rank, slot.shape.begin())) {
    return;
  }
  refuse_input(
      slot.name,
      std::string("shape ") + slot.letters + " = " + sizes_text(slot.shape.data(), slot.rank),
      shape_text(view));
}

void require_dtype(const Slot& slot, DTypes dtypes) {
  if (dtypes & bit(slot.view->dtype)) return;
  refuse_input(slot.name, "dtype " + dtypes_text(dtypes), name_of(slot.view->dtype));
}

// No number of bytes overflows in what follows validation.
void require_countable(const Slot& slot) {
  const auto end = slot.shape.begin() + slot.rank;
  if (std::find(slot.shape.begin(), end, 0) != end) return;
  std::int64_t left = kMaxBytes / static_cast<std::int64_t>(size_of(slot.view->dtype));
  for (auto size = slot.shape.begin(); size != end; ++size) {
    if (*size > left) {
      refuse_input(slot.name, "at most 2^60 bytes", "shape " + shape_text(*slot.view));
    }
    left /= *size;
  }
}

// x, B and cu_seqlens say what the letters stand for.
void read_sizes(const Inputs& in, Problem& k) {
  if (in.x.rank != 4) refuse_input("x", "shape (b, l, h, p)", shape_text(in.x));
  k.b = in.x.shape[0];
  k.l = in.x.shape[1];
  k.h = in.x.shape[2];
  k.p = in.x.shape[3];
  if (k.b < 0 || k.l < 0 || k.h < 1 || k.p < 1 || k.p > kMaxHeadDim) {
    refuse_input("x", "shape (b, l, h, p) with b >= 0, l >= 0, h >= 1, 1 <= p <= 512",
                 shape_text(in.x));
  }
  if (in.B.rank != 4 || in.B.shape[0] != k.b || in.B.shape[1] != k.l) {
    refuse_input(
        "B",
        "shape (b, l, g, n) = (" + std::to_string(k.b) + ", " + std::to_string(k.l) + ", g, n)",
        shape_text(in.B));
  }
  k.g = in.B.shape[2];
  k.n = in.B.shape[3];
  if (k.g < 1 || k.h % k.g != 0) {
    refuse_input("B", "g groups that divide h = " + std::to_string(k.h),
                 "g = " + std::to_string(k.g));
  }
  if (k.n < 1 || k.n > kMaxStateSize) {
    refuse_input("B", "shape (b, l, g, n) with 1 <= n <= 512", shape_text(in.B));
  }
  k.sequences = k.b;
  if (in.seq_idx.present()) k.packing = Packing::kSeqIdx;
  if (in.cu_seqlens.present()) {
    if (in.seq_idx.present()) {
      refuse_input("cu_seqlens", "none together with seq_idx",
                   "shape " + shape_text(in.cu_seqlens));
    }
    if (in.cu_seqlens.rank != 1 || in.cu_seqlens.shape[0] < 1) {
      refuse_input("cu_seqlens", "shape (s + 1) with s >= 0", shape_text(in.cu_seqlens));
    }
    if (k.b != 1) {
      refuse_input("x", "b = 1 together with cu_seqlens", "b = " + std::to_string(k.b));
    }
    k.packing = Packing::kCuSeqlens;
    k.sequences = in.cu_seqlens.shape[0] - 1;
  }
}

void read_dtypes(const Inputs& in, const Outputs& out, Problem& k) {
  const auto dtype_of = [](const TensorView& view) {
    return view.present() ? std::optional(view.dtype) : std::nullopt;
  };
  k.x = in.x.dtype;
  k.dt = in.dt.dtype;
  k.B = in.B.dtype;
  k.C = in.C.dtype;
  k.y = out.y.dtype;
  k.D = dtype_of(in.D);
  k.z = dtype_of(in.z);
  k.dt_bias = dtype_of(in.dt_bias);
  k.initial_states = dtype_of(in.initial_states);
  k.final_states = dtype_of(out.final_states);
  k.chunk_states = dtype_of(out.chunk_states);
  k.log_decay = dtype_of(out.log_decay);
  k.cu_seqlens_64 = in.cu_seqlens.dtype == DType::kI64;
  k.D_per_head_dim = in.D.rank == 2;
}

void require_at_least_0(const char* name, std::int64_t value) {
  if (value < 0) refuse_input(name, "at least 0", std::to_string(value));
}

void read_options(const Outputs& out, const Options& options, Problem& k) {
  if (std::isnan(options.dt_min)) refuse_input("dt_min", "a number", "nan");
  if (!(options.dt_min <= options.dt_max)) {
    refuse_input("dt_max", "at least dt_min = " + number_text(options.dt_min),
                 number_text(options.dt_max));
  }
  if (out.chunk_states.present() ? options.state_every < 1 : options.state_every != 0) {
    refuse_input(
        "state_every",
        out.chunk_states.present() ? "at least 1 with chunk_states" : "0 without chunk_states",
        std::to_string(options.state_every));
  }
  require_at_least_0("chunk_size", options.chunk_size);
  require_at_least_0("threads", options.threads);
  if (options.threads > kMaxThreads) {
    refuse_input("threads", "at most " + std::to_string(kMaxThreads),
                 std::to_string(options.threads));
  }
  for (const auto& [name, view] :
       {std::pair{"chunk_states", &out.chunk_states}, std::pair{"log_decay", &out.log_decay}}) {
    if (k.packing == Packing::kSeqIdx && view->present()) {
      refuse_input(name, "none together with seq_idx", "shape " + shape_text(*view));
    }
  }
  k.state_every = options.state_every;
  k.chunk_size = options.chunk_size;
  k.batch_invariant = options.batch_invariant;
  k.dt_softplus = options.dt_softplus;
  k.dt_min = options.dt_min;
  k.dt_max = options.dt_max;
}

// ---- memory -------------------------------------------------------------------------------------

// The CPU is one device, whatever its index says.
bool same_device(Device a, Device b) {
  return a.kind == b.kind && (a.kind == DeviceKind::kCpu || a.index == b.index);
}

void require_addressable(const Slot& slot) {
  const TensorView& view = *slot.view;
  std::int64_t left = kMaxBytes / static_cast<std::int64_t>(size_of(view.dtype));
  for (int i = 0; i < view.rank; ++i) {
    const std::int64_t steps = view.shape[i] - 1, stride = view.strides[i];
    if (steps <= 0 || stride == 0) continue;
    // Divides instead of multiplying; the least int64 has no absolute value.
    if (stride < -kMaxBytes || std::abs(stride) > left / steps) {
      refuse_input(slot.name, "strides that reach at most 2^60 bytes", strides_text(view));
    }
    left -= std::abs(stride) * steps;
  }
}

void require_data(const Slot& slot) {
  const TensorView& view = *slot.view;
  if (view.data != nullptr) return;
  refuse_input(slot.name, "memory for " + std::to_string(view.elements()) + " elements",
               "a null pointer");
}

void require_aligned(const Slot& slot) {
  const TensorView& view = *slot.view;
  const std::size_t bytes = size_of(view.dtype);
  if (reinterpret_cast<std::uintptr_t>(view.data) % bytes == 0) return;
  refuse_input(slot.name,
               "an address that is a multiple of " + std::to_string(bytes) + " bytes (" +
                   name_of(view.dtype) + ")",
               hexadecimal(view.data));
}

// The one overlap that is legal: final_states at the very places of initial_states.
bool same_view(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i])) return false;
  }
  return true;
}

void require_apart(const Slot& out, std::span<const Slot> slots) {
  if (may_overlap_itself(*out.view)) {
    refuse_input(out.name, "strides that nest (each steps over all that the smaller ones reach)",
                 strides_text(*out.view));
  }
  for (const Slot& other : slots) {
    if (&other == &out || !may_overlap(*out.view, *other.view)) continue;
    const bool in_place = other.name == std::string_view("initial_states") &&
                          out.name == std::string_view("final_states") &&
                          same_view(*out.view, *other.view);
    if (in_place) continue;
    refuse_input(out.name, "memory that no other tensor uses",
                 std::string("an overlap with ") + other.name);
  }
}

}  // namespace

Problem validate_problem(const Inputs& inputs, const Outputs& outputs, const Options& options) {
  Problem problem;
  read_sizes(inputs, problem);
  read_dtypes(inputs, outputs, problem);
  read_options(outputs, options, problem);
  for (const Slot& slot : slots_of(problem, inputs, outputs, options.backend == "reference")) {
    require_rank(slot);
    if (slot.planned == 0 && !slot.view->present()) continue;
    require_shape(slot);
    require_dtype(slot, slot.legal);
    require_countable(slot);
  }
  problem.alignment = alignment_of(inputs, outputs);
  return problem;
}

Device validate_memory(const Inputs& inputs, const Outputs& outputs) {
  const Device device = inputs.x.device;
  // Names and views are all that is used of these: the shapes have been checked.
  const auto slots = slots_of(Problem{}, inputs, outputs, false);
  for (const Slot& slot : slots) {
    if (!slot.view->present()) continue;
    if (!same_device(slot.view->device, device)) {
      refuse_input(slot.name, "device " + device_text(device) + " (that of x)",
                   device_text(slot.view->device));
    }
    if (slot.view->elements() == 0) continue;
    require_data(slot);
    require_aligned(slot);
    require_addressable(slot);
  }
  for (const Slot& slot : slots) {
    if (slot.output) require_apart(slot, slots);
  }
  return device;
}

void validate_contents(const Problem& problem, const Buffers& buffers) {
  if (problem.packing != Packing::kCuSeqlens) return;
  const auto name = [](std::int64_t i) { return "cu_seqlens[" + std::to_string(i) + "]"; };
  std::int64_t before = sequence_offset(problem, buffers, 0);
  if (before != 0) refuse_input("cu_seqlens", name(0) + " = 0", std::to_string(before));
  for (std::int64_t i = 1; i <= problem.sequences; ++i) {
    const std::int64_t offset = sequence_offset(problem, buffers, i);
    if (offset < before) {
      refuse_input("cu_seqlens", name(i) + " >= " + name(i - 1) + " = " + std::to_string(before),
                   std::to_string(offset));
    }
    if (offset > problem.l) {
      refuse_input("cu_seqlens", name(i) + " <= l = " + std::to_string(problem.l),
                   std::to_string(offset));
    }
    before = offset;
  }
}

void require_workspace(const void* workspace, std::size_t bytes) {
  if (bytes == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0;
  if (workspace != nullptr && aligned) return;
  refuse_input("workspace",
               std::to_string(bytes) + " bytes at an address that is a multiple of " +
                   std::to_string(kAlignment),
               workspace == nullptr ? "a null pointer" : hexadecimal(workspace));
}

void require_fits(const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  for (const Slot& slot : slots_of(problem, inputs, outputs, false)) {
    require_rank(slot);
    if (slot.planned == 0) {
      if (!slot.view->present()) continue;
      refuse_input(slot.name, "none, as in the plan", "shape " + shape_text(*slot.view));
    }
    require_shape(slot);
    require_dtype(slot, slot.planned);
    if (slot.view->elements() > 0) require_data(slot);
  }
  if (inputs.x.device.kind == DeviceKind::kCuda &&
      !alignment_of(inputs, outputs).serves(problem.alignment)) {
    refuse_input("x, B, C, z, y", "addresses and strides as well aligned as those of the plan",
                 "less");
  }
}

}  // namespace chunkscan
