// Views: any strides, offsets beyond 32 bits, broadcast inputs.
#include <sys/mman.h>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::Layout;
using testkit::OwnedTensor;
using testkit::PackedBy;

class Views : public Conformance {};

CaseSpec everything(std::int64_t h) {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 40;
  spec.h = h;
  spec.p = 9;
  spec.n = 18;
  spec.z = true;
  spec.initial_states = spec.final_states = spec.chunk_states = DType::kF32;
  spec.state_every = 15;
  spec.log_decay = true;
  return spec;
}

TEST_P(Views, EveryLayoutGivesTheContiguousResult) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (std::int64_t h = 1; h <= 17; ++h) {
      CaseSpec spec = everything(h);
      spec.dtype = dtype;
      Case plain = make(spec);
      run(plain, 16);
      for (Layout layout : {Layout::kFused, Layout::kPadded, Layout::kStrided, Layout::kReversed,
                            Layout::kTokens, Layout::kTokensX, Layout::kTokensBC}) {
        if (h % 4 != 1 && layout != Layout::kFused) continue;
        spec.layout = layout;
        Case other = make(spec);
        if (!takes(other, 16)) continue;
        const auto before = other.digest_outside_outputs();
        run(other, 16);
        expect_same_numbers(plain, other);
        EXPECT_EQ(other.digest_outside_outputs(), before);
      }
    }
  }
}

TEST_P(Views, BroadcastInputs) {
  CaseSpec spec = everything(4);
  Case c = make(spec);
  for (TensorView* view : {&c.inputs.x, &c.inputs.dt, &c.inputs.B, &c.inputs.C, &c.inputs.z}) {
    view->strides[0] = 0;
  }
  c.inputs.A.strides[0] = c.inputs.D.strides[0] = c.inputs.dt_bias.strides[0] = 0;
  c.inputs.initial_states.strides[1] = 0;
  expect_right(c, 16, "over the batch");
  c.inputs.x.strides[2] = c.inputs.dt.strides[2] = 0;
  c.inputs.B.strides[3] = c.inputs.C.strides[3] = 0;
  c.inputs.z.strides[3] = 0;
  c.inputs.dt.strides[1] = 0;
  expect_right(c, 16, "over heads and elements");
}

// Address space without memory behind it until it is touched.
class Reserve {
 public:
  explicit Reserve(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Reserve() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Reserve(const Reserve&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

// Moves a tensor's elements to `start`, with `stride` elements from one index of `axis` to the
// next.
TensorView spread(const TensorView& view, std::byte* start, int axis, std::int64_t stride) {
  TensorView far = view;
  far.data = start;
  far.strides[axis] = stride;
  testkit::copy(view, far);
  return far;
}

TEST_P(Views, OffsetsBeyond32Bits) {
  if (on_gpu()) GTEST_SKIP() << "the address space is the host's; gpu/large_test.cpp has the GPU's";
  constexpr std::int64_t kStride = (std::int64_t{1} << 30) + 1;
  constexpr std::int64_t kCount = 6;     // 5 strides are more than 2^32 elements
  constexpr std::size_t kRow = 1 << 14;  // bytes; the row of a tensor is shorter
  constexpr std::size_t kTensors = 9;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    CaseSpec spec;
    spec.dtype = dtype;
    spec.l = spec.h = kCount;
    spec.z = true;
    spec.initial_states = spec.final_states = spec.chunk_states = dtype;
    spec.state_every = 1;
    Case near = make(spec), far = make(spec);
    run(near, 16);
    const Reserve reserve(kCount * kStride * size_of(dtype) + kTensors * kRow);
    ASSERT_TRUE(reserve.ok());
    std::byte* start = reserve.data();
    // Tensors are columns of one buffer whose rows are the tokens, or the heads of a state.
    for (TensorView* view : {&far.inputs.x, &far.inputs.dt, &far.inputs.B, &far.inputs.C,
                             &far.inputs.z, &far.inputs.initial_states, &far.outputs.y,
                             &far.outputs.final_states, &far.outputs.chunk_states}) {
      *view = spread(*view, start, 1, kStride);
      start += kRow;
    }
    run(far, 16);
    expect_same_outputs(near.outputs, far.outputs);
  }
}

INSTANTIATE_TEST_SUITE_P(, Views, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
