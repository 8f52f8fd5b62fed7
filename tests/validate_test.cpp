// Every mistake is refused before any work, with the one form of sentence.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "testkit/generate.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Layout;
using testkit::PackedBy;

CaseSpec everything() {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 6;
  spec.h = 4;
  spec.p = 3;
  spec.n = 5;
  spec.g = 2;
  spec.z = true;
  spec.initial_states = spec.final_states = spec.chunk_states = DType::kF32;
  spec.state_every = 4;
  spec.log_decay = true;
  return spec;
}

CaseSpec packed() {
  CaseSpec spec = everything();
  spec.b = 1;
  spec.packed_by = PackedBy::kCuSeqlens;
  spec.lengths = {2, 0, 3};
  return spec;
}

CaseSpec with_seq_idx() {
  CaseSpec spec = everything();
  spec.chunk_states.reset();
  spec.state_every = 0;
  spec.log_decay = false;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {2, 4};
  return spec;
}

bool still_poisoned(const TensorView& view) {
  bool poisoned = true;
  testkit::for_each_element(view, [&](auto, const std::byte* address) {
    for (std::size_t i = 0; i < size_of(view.dtype); ++i) poisoned &= address[i] == std::byte{0xff};
  });
  return poisoned;
}

using Change = std::function<void(Case&)>;

void expect_refusal(const CaseSpec& spec, const Change& change, const std::string& sentence,
                    ErrorKind kind = ErrorKind::kInput) {
  Case c(spec);
  const Outputs untouched = c.outputs;
  change(c);
  try {
    forward(c.inputs, c.outputs, c.options);
    ADD_FAILURE() << "accepted, instead of: " << sentence;
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "[forward] " + sentence);
    EXPECT_EQ(error.kind(), kind) << sentence;
  }
  for (const TensorView& view : testkit::views_of(untouched)) EXPECT_TRUE(still_poisoned(view));
}

TEST(Validate, AcceptsWhatTheOthersStartFrom) {
  for (const CaseSpec& spec : {everything(), packed(), with_seq_idx()}) {
    Case c(spec);
    c.options.backend = "reference";
    EXPECT_NO_THROW(forward(c.inputs, c.outputs, c.options));
  }
}

TEST(Validate, Shapes) {
  const auto refuse = [](const Change& change, const std::string& sentence) {
    expect_refusal(everything(), change, sentence);
  };
  refuse([](Case& c) { c.inputs.x = {}; }, "x: expected shape (b, l, h, p), got none");
  refuse([](Case& c) { c.inputs.x.rank = 3; }, "x: expected shape (b, l, h, p), got (2, 6, 4)");
  refuse([](Case& c) { c.inputs.x.rank = 9; }, "x: expected shape (b, l, h, p), got 9 dimensions");
  const std::string sizes =
      "x: expected shape (b, l, h, p) with b >= 0, l >= 0, h >= 1, "
      "1 <= p <= 512, got ";
  refuse([](Case& c) { c.inputs.x.shape[1] = -1; }, sizes + "(2, -1, 4, 3)");
  refuse([](Case& c) { c.inputs.x.shape[2] = 0; }, sizes + "(2, 6, 0, 3)");
  refuse([](Case& c) { c.inputs.x.shape[3] = 513; }, sizes + "(2, 6, 4, 513)");
  refuse([](Case& c) { c.inputs.z.rank = -1; }, "z: expected a rank of at least 0, got -1");
  refuse([](Case& c) { c.outputs.log_decay.rank = -2; },
         "log_decay: expected a rank of at least 0, got -2");
  refuse([](Case& c) { c.inputs.dt = {}; }, "dt: expected shape (b, l, h) = (2, 6, 4), got none");
  refuse([](Case& c) { c.inputs.dt.shape[2] = 5; },
         "dt: expected shape (b, l, h) = (2, 6, 4), got (2, 6, 5)");
  refuse([](Case& c) { c.inputs.A.shape[0] = 1; }, "A: expected shape (h) = (4), got (1)");
  refuse([](Case& c) { c.inputs.B = {}; },
         "B: expected shape (b, l, g, n) = (2, 6, g, n), got none");
  refuse([](Case& c) { c.inputs.B.shape[0] = 1; },
         "B: expected shape (b, l, g, n) = (2, 6, g, n), got (1, 6, 2, 5)");
  refuse([](Case& c) { c.inputs.B.shape[2] = 3; },
         "B: expected g groups that divide h = 4, got g = 3");
  refuse([](Case& c) { c.inputs.B.shape[2] = 0; },
         "B: expected g groups that divide h = 4, got g = 0");
  refuse([](Case& c) { c.inputs.B.shape[3] = 0; },
         "B: expected shape (b, l, g, n) with 1 <= n <= 512, got (2, 6, 2, 0)");
  refuse([](Case& c) { c.inputs.C.shape[3] = 4; },
         "C: expected shape (b, l, g, n) = (2, 6, 2, 5), got (2, 6, 2, 4)");
  refuse([](Case& c) { c.inputs.D.shape[0] = 3; }, "D: expected shape (h) = (4), got (3)");
  refuse(
      [](Case& c) {
        c.inputs.D = TensorView(c.inputs.D.data, DType::kF32, {4, 2});
      },
      "D: expected shape (h, p) = (4, 3), got (4, 2)");
  refuse([](Case& c) { c.inputs.z.shape[3] = 2; },
         "z: expected shape (b, l, h, p) = (2, 6, 4, 3), got (2, 6, 4, 2)");
  refuse([](Case& c) { c.inputs.dt_bias.rank = 2; },
         "dt_bias: expected shape (h) = (4), got (4, 0)");
  refuse([](Case& c) { c.inputs.initial_states.shape[0] = 1; },
         "initial_states: expected shape (b, h, p, n) = (2, 4, 3, 5), got (1, 4, 3, 5)");
  refuse([](Case& c) { c.outputs.y = {}; },
         "y: expected shape (b, l, h, p) = (2, 6, 4, 3), got none");
  refuse([](Case& c) { c.outputs.final_states.shape[3] = 3; },
         "final_states: expected shape (b, h, p, n) = (2, 4, 3, 5), got (2, 4, 3, 3)");
  refuse([](Case& c) { c.outputs.chunk_states.shape[1] = 2; },
         "chunk_states: expected shape (b, l / state_every, h, p, n) = (2, 1, 4, 3, 5), "
         "got (2, 2, 4, 3, 5)");
  refuse([](Case& c) { c.outputs.log_decay.shape[1] = 1; },
         "log_decay: expected shape (b, h) = (2, 4), got (2, 1)");
  expect_refusal(
      packed(), [](Case& c) { c.inputs.initial_states.shape[0] = 1; },
      "initial_states: expected shape (s, h, p, n) = (3, 4, 3, 5), got (1, 4, 3, 5)");
  expect_refusal(
      packed(), [](Case& c) { c.outputs.log_decay.shape[0] = 2; },
      "log_decay: expected shape (s, h) = (3, 4), got (2, 4)");
  expect_refusal(
      packed(), [](Case& c) { c.inputs.cu_seqlens.shape[0] = 0; },
      "cu_seqlens: expected shape (s + 1) with s >= 0, got (0)");
  expect_refusal(
      with_seq_idx(), [](Case& c) { c.inputs.seq_idx.shape[1] = 5; },
      "seq_idx: expected shape (b, l) = (2, 6), got (2, 5)");
}

TEST(Validate, DTypes) {
  const auto refuse = [](const Change& change, const std::string& sentence) {
    expect_refusal(everything(), change, sentence);
  };
  for (auto view :
       {&Inputs::x, &Inputs::dt, &Inputs::B, &Inputs::C, &Inputs::z, &Inputs::initial_states}) {
    const char* name = view == &Inputs::x    ? "x"
                       : view == &Inputs::dt ? "dt"
                       : view == &Inputs::B  ? "B"
                       : view == &Inputs::C  ? "C"
                       : view == &Inputs::z  ? "z"
                                             : "initial_states";
    refuse([view](Case& c) { (c.inputs.*view).dtype = DType::kF64; },
           std::string(name) + ": expected dtype f32 | bf16 | f16, got f64");
  }
  refuse([](Case& c) { c.inputs.A.dtype = DType::kBF16; }, "A: expected dtype f32, got bf16");
  refuse([](Case& c) { c.inputs.D.dtype = DType::kF16; }, "D: expected dtype f32, got f16");
  refuse([](Case& c) { c.outputs.y.dtype = DType::kBF16; }, "y: expected dtype f32, got bf16");
  refuse([](Case& c) { c.outputs.y.dtype = DType::kF64; }, "y: expected dtype f32, got f64");
  refuse([](Case& c) { c.outputs.final_states.dtype = DType::kF64; },
         "final_states: expected dtype f32 | bf16 | f16, got f64");
  refuse([](Case& c) { c.outputs.chunk_states.dtype = DType::kI32; },
         "chunk_states: expected dtype f32 | bf16 | f16, got i32");
  refuse([](Case& c) { c.outputs.log_decay.dtype = DType::kF16; },
         "log_decay: expected dtype f32, got f16");
  refuse(
      [](Case& c) {
        c.options.backend = "reference";
        c.outputs.y.dtype = DType::kF16;
      },
      "y: expected dtype f64 | f32, got f16");
  CaseSpec half = everything();
  half.dtype = DType::kF16;
  expect_refusal(
      half, [](Case& c) { c.inputs.dt_bias.dtype = DType::kBF16; },
      "dt_bias: expected dtype f32 | f16, got bf16");
  expect_refusal(
      packed(), [](Case& c) { c.inputs.cu_seqlens.dtype = DType::kF32; },
      "cu_seqlens: expected dtype i32 | i64, got f32");
  expect_refusal(
      with_seq_idx(), [](Case& c) { c.inputs.seq_idx.dtype = DType::kI64; },
      "seq_idx: expected dtype i32, got i64");
}

TEST(Validate, Options) {
  const auto refuse = [](const Change& change, const std::string& sentence) {
    expect_refusal(everything(), change, sentence);
  };
  refuse([](Case& c) { c.options.dt_min = 2.0f, c.options.dt_max = 1.5f; },
         "dt_max: expected at least dt_min = 2, got 1.5");
  refuse([](Case& c) { c.options.dt_min = NAN; }, "dt_min: expected a number, got nan");
  refuse([](Case& c) { c.options.dt_max = NAN; }, "dt_max: expected at least dt_min = 0, got nan");
  refuse([](Case& c) { c.options.state_every = 0; },
         "state_every: expected at least 1 with chunk_states, got 0");
  refuse([](Case& c) { c.outputs.chunk_states = {}; },
         "state_every: expected 0 without chunk_states, got 4");
  refuse([](Case& c) { c.options.chunk_size = -64; }, "chunk_size: expected at least 0, got -64");
  refuse([](Case& c) { c.options.threads = -1; }, "threads: expected at least 0, got -1");
  refuse([](Case& c) { c.options.threads = 40000; }, "threads: expected at most 1024, got 40000");
  refuse([](Case& c) { c.inputs.x.dtype = static_cast<DType>(33); },
         "x: expected dtype f32 | bf16 | f16, got ?");
  refuse([](Case& c) { c.options.backend = "gpu"; },
         "backend: expected cuda | cuda/sm90 | cuda/portable | cpu | reference, got \"gpu\"");
  refuse(
      [](Case& c) {
        c.options.backend = "reference";
        c.options.config = "walk";
      },
      "config: expected recurrence | staged with the reference backend, got \"walk,q=64\"");
}

TEST(Validate, Packing) {
  expect_refusal(
      packed(),
      [](Case& c) {
        c.inputs.seq_idx = TensorView(c.inputs.x.data, DType::kI32, {1, 6});
      },
      "cu_seqlens: expected none together with seq_idx, got shape (4)");
  expect_refusal(
      everything(),
      [](Case& c) { c.inputs.cu_seqlens = TensorView(c.inputs.x.data, DType::kI32, {3}); },
      "x: expected b = 1 together with cu_seqlens, got b = 2");
  expect_refusal(
      with_seq_idx(),
      [](Case& c) {
        c.outputs.chunk_states = TensorView(c.outputs.y.data, DType::kF32, {2, 1, 4, 3, 5});
        c.options.state_every = 4;
      },
      "chunk_states: expected none together with seq_idx, got shape (2, 1, 4, 3, 5)");
  expect_refusal(
      with_seq_idx(),
      [](Case& c) {
        c.outputs.log_decay = TensorView(c.outputs.y.data, DType::kF32, {2, 4});
      },
      "log_decay: expected none together with seq_idx, got shape (2, 4)");
}

TEST(Validate, ContentsOfCuSeqlens) {
  const auto refuse = [](std::int64_t i, double value, const std::string& sentence) {
    for (bool wide : {false, true}) {
      CaseSpec spec = packed();
      spec.cu_seqlens_64 = wide;
      expect_refusal(
          spec, [=](Case& c) { testkit::set(c.inputs.cu_seqlens, {i}, value); },
          "cu_seqlens: expected " + sentence);
    }
  };
  refuse(0, 1, "cu_seqlens[0] = 0, got 1");
  refuse(2, 1, "cu_seqlens[2] >= cu_seqlens[1] = 2, got 1");
  refuse(1, -3, "cu_seqlens[1] >= cu_seqlens[0] = 0, got -3");
  refuse(3, 7, "cu_seqlens[3] <= l = 6, got 7");
}

TEST(Validate, Memory) {
  const auto refuse = [](const Change& change, const std::string& sentence) {
    expect_refusal(everything(), change, sentence);
  };
  refuse(
      [](Case& c) {
        c.inputs.B.device = {DeviceKind::kCuda, 1};
      },
      "B: expected device cpu (that of x), got cuda:1");
  refuse(
      [](Case& c) {
        c.outputs.y.device = {DeviceKind::kCuda, 0};
      },
      "y: expected device cpu (that of x), got cuda:0");
  refuse([](Case& c) { c.inputs.C.data = nullptr; },
         "C: expected memory for 120 elements, got a null pointer");
  refuse([](Case& c) { c.outputs.y.data = nullptr; },
         "y: expected memory for 144 elements, got a null pointer");
  refuse([](Case& c) { c.inputs.z.data = reinterpret_cast<void*>(0x1236); },
         "z: expected an address that is a multiple of 4 bytes (f32), got 0x1236");
  refuse([](Case& c) { c.inputs.x.shape[0] = c.inputs.B.shape[0] = std::int64_t{1} << 60; },
         "x: expected at most 2^60 bytes, got shape (1152921504606846976, 6, 4, 3)");
  refuse([](Case& c) { c.inputs.x.strides[1] = std::int64_t{1} << 57; },
         "x: expected strides that reach at most 2^60 bytes, "
         "got strides (72, 144115188075855872, 3, 1) with shape (2, 6, 4, 3)");
  refuse([](Case& c) { c.inputs.x.strides[1] = std::numeric_limits<std::int64_t>::min(); },
         "x: expected strides that reach at most 2^60 bytes, "
         "got strides (72, -9223372036854775808, 3, 1) with shape (2, 6, 4, 3)");
}

TEST(Validate, Overlap) {
  const auto refuse = [](const Change& change, const std::string& sentence) {
    expect_refusal(everything(), change, sentence);
  };
  refuse([](Case& c) { c.outputs.y.strides[2] = 0; },
         "y: expected strides that nest (each steps over all that the smaller ones reach), "
         "got strides (72, 12, 0, 1) with shape (2, 6, 4, 3)");
  refuse([](Case& c) { c.outputs.final_states.strides[1] = 14; },
         "final_states: expected strides that nest (each steps over all that the smaller ones "
         "reach), "
         "got strides (60, 14, 5, 1) with shape (2, 4, 3, 5)");
  refuse([](Case& c) { c.outputs.y.data = c.inputs.x.data; },
         "y: expected memory that no other tensor uses, got an overlap with x");
  refuse([](Case& c) { c.outputs.log_decay.data = c.inputs.dt_bias.data; },
         "log_decay: expected memory that no other tensor uses, got an overlap with dt_bias");
  refuse([](Case& c) { c.outputs.final_states.data = c.outputs.y.data; },
         "y: expected memory that no other tensor uses, got an overlap with final_states");
  const std::string on_initial =
      "final_states: expected memory that no other tensor uses, "
      "got an overlap with initial_states";
  refuse(
      [](Case& c) {
        c.outputs.final_states = testkit::slice(c.inputs.initial_states, 0, 1, 2);
        c.outputs.final_states.shape[0] = 2;
      },
      on_initial);
  refuse(
      [](Case& c) {
        c.outputs.final_states.data = c.inputs.initial_states.data;
        c.outputs.final_states.strides = {60, 15, 1, 3, 0};
      },
      on_initial);
  CaseSpec halves = everything();
  halves.initial_states = DType::kF16;
  expect_refusal(
      halves, [](Case& c) { c.outputs.final_states.data = c.inputs.initial_states.data; },
      on_initial);
}

TEST(Validate, AcceptsColumnSlicesOfOneBuffer) {
  CaseSpec spec = everything();
  spec.layout = Layout::kFused;
  Case c(spec);
  c.options.backend = "reference";
  EXPECT_NO_THROW(forward(c.inputs, c.outputs, c.options));
  c.outputs.y = testkit::slice(c.inputs.z, 3, 0, 3);
  EXPECT_THROW(forward(c.inputs, c.outputs, c.options), Error);
}

TEST(Validate, AcceptsFinalStatesOnInitialStates) {
  CaseSpec spec = everything();
  spec.in_place = true;
  Case c(spec);
  c.options.backend = "reference";
  EXPECT_NO_THROW(forward(c.inputs, c.outputs, c.options));
}

TEST(Validate, TheCpuIsOneDevice) {
  Case c(everything());
  c.options.backend = "reference";
  c.inputs.A.device.index = 1;
  c.outputs.y.device.index = 7;
  EXPECT_NO_THROW(forward(c.inputs, c.outputs, c.options));
}

// Sizes without a token or a row may hold any number of the others: nothing loops over them.
TEST(Validate, NothingToDoTakesNoTime) {
  const std::int64_t many = std::int64_t{1} << 57;
  for (const auto& [b, l, h] : {std::array{std::int64_t{1}, std::int64_t{0}, many},
                                std::array{many, std::int64_t{0}, std::int64_t{1}},
                                std::array{std::int64_t{0}, many, std::int64_t{1}}}) {
    for (const char* backend : {"cpu", "reference"}) {
      std::vector<float> values(1);
      Inputs in;
      in.x = TensorView(nullptr, DType::kF32, {b, l, h, 1});
      in.dt = TensorView(nullptr, DType::kF32, {b, l, h});
      in.A = TensorView(values.data(), DType::kF32, {h}, {0});
      in.B = in.C = TensorView(nullptr, DType::kF32, {b, l, 1, 1});
      Outputs out;
      out.y = in.x;
      Options options;
      options.backend = backend;
      EXPECT_NO_THROW(forward(in, out, options));
    }
  }
}

TEST(Validate, AcceptsEmptyTensorsWithoutMemory) {
  CaseSpec spec = everything();
  spec.b = 0;
  Case none(spec);
  for (TensorView* view : {&none.inputs.x, &none.inputs.dt, &none.inputs.B, &none.inputs.C,
                           &none.inputs.z, &none.outputs.y}) {
    view->data = nullptr;
  }
  none.options.backend = "reference";
  EXPECT_NO_THROW(forward(none.inputs, none.outputs, none.options));
}

}  // namespace
}  // namespace chunkscan
