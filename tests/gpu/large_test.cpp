// Tensors of more than 2^31 elements, in the GPU's own memory: the last tokens against a copy of
// them that starts at 0. Before them dt and x are 0, so that no state reaches them.
#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::DeviceMemory;
using testkit::kGpu;
using testkit::slice;

class Large : public Conformance {
 protected:
  static constexpr std::int64_t kLast = 512;
  static constexpr std::size_t kNeeded = std::size_t{40} << 30;  // bytes

  void SetUp() override {
    Conformance::SetUp();
    if (!IsSkipped() && testkit::gpu_memory_bytes() < kNeeded) {
      GTEST_SKIP() << "expected a GPU with 40 GiB of memory, got "
                   << (testkit::gpu_memory_bytes() >> 30);
    }
  }
};

// x, B, C, dt, z and y as columns of rows that are `stride` elements apart; bf16.
struct Columns {
  static constexpr std::int64_t h = 8, p = 64, n = 64;

  Columns(std::byte* in, std::byte* out, std::int64_t l, std::int64_t stride, Device device) {
    const auto place = [&](TensorView& view, std::int64_t at, std::int64_t outer,
                           std::int64_t inner) {
      view = TensorView(in + at * 2, DType::kBF16, {1, l, outer, inner},
                        {l * stride, stride, inner, 1}, device);
    };
    place(inputs.x, 0, h, p);
    place(inputs.B, h * p, 1, n);
    place(inputs.C, h * p + n, 1, n);
    place(inputs.z, h * p + 2 * n, h, p);
    inputs.dt = TensorView(in + (2 * h * p + 2 * n) * 2, DType::kBF16, {1, l, h},
                           {l * stride, stride, 1}, device);
    outputs.y = TensorView(out, DType::kBF16, {1, l, h, p}, {l * stride, stride, p, 1}, device);
  }

  Inputs inputs;
  Outputs outputs;
};

TEST_P(Large, ColumnsOfAWideProjection) {
  constexpr std::int64_t kStride = 1 << 15, kTokens = 70'144;  // 2^31 is row 65,536
  constexpr std::size_t kRow = kStride * 2;
  const DeviceMemory projection(kTokens * kRow), results(kTokens * kRow), A(Columns::h * 4);
  projection.fill(0);
  const testkit::Block last(kLast * kRow), got(kLast * kRow), want(kLast * kRow);
  const Columns compact(last.data(), want.data(), kLast, kStride, {});
  std::uint64_t draw = 0;
  const auto normal = [&draw](testkit::Index) { return testkit::normal_at(3, draw++); };
  for (const TensorView& view :
       {compact.inputs.x, compact.inputs.B, compact.inputs.C, compact.inputs.z}) {
    testkit::fill(view, normal);
  }
  testkit::fill(compact.inputs.dt,
                [&draw](testkit::Index) { return 0.05 * testkit::uniform_at(4, draw++); });
  const std::vector<float> rates(Columns::h, -1.5f);
  Inputs host = compact.inputs;
  host.A = TensorView(rates.data(), DType::kF32, {Columns::h});

  Columns far(projection.data(), results.data(), kTokens, kStride, kGpu);
  far.inputs.A = TensorView(A.data(), DType::kF32, {Columns::h}, kGpu);
  const testkit::Stream stream;
  stream.copy_to_device(A.data(), rates.data(), A.size());
  const std::size_t before = (kTokens - kLast) * kRow;
  stream.copy_to_device(projection.data() + before, last.data(), last.size());
  forward(far.inputs, far.outputs, with({}), stream.get());
  stream.copy_to_host(got.data(), results.data() + before, got.size());

  call(host, compact.outputs, {});
  const Columns far_end(last.data(), got.data(), kLast, kStride, {});
  expect_close(host, testkit::Output::kY, far_end.outputs.y, compact.outputs.y);
}

// Contiguous x and y of 2^31 elements and more, and as many of the chunks' states.
TEST_P(Large, AContiguousSequence) {
  constexpr std::int64_t h = 64, p = 64, n = 128, l = (std::int64_t{1} << 19) + 1024;
  const auto bytes = [](std::int64_t tokens, std::int64_t elements) {
    return static_cast<std::size_t>(tokens * elements) * 2;
  };
  const DeviceMemory x(bytes(l, h * p)), y(bytes(l, h * p)), B(bytes(l, n)), C(bytes(l, n)),
      dt(bytes(l, h)), A(h * 4);
  for (const DeviceMemory* memory : {&x, &B, &C, &dt}) memory->fill(0);
  const testkit::Stream stream;

  testkit::CaseSpec spec = testkit::sized(kLast, h, 1, p, n);
  spec.dtype = DType::kBF16;
  spec.D = testkit::DForm::kNone;
  spec.dt_bias = spec.softplus = false;
  testkit::Case compact = make(spec);
  const auto far = [&](const DeviceMemory& memory, const TensorView& view) {
    const std::size_t end = static_cast<std::size_t>(view.elements()) * 2;
    stream.copy_to_device(memory.data() + memory.size() - end, view.data, end);
    TensorView copy = view;
    copy.shape[1] = l;
    return TensorView(memory.data(), view.dtype,
                      std::span(copy.shape.data(), static_cast<std::size_t>(copy.rank)), kGpu);
  };
  Inputs inputs;
  Outputs outputs;
  inputs.x = far(x, compact.inputs.x);
  inputs.B = far(B, compact.inputs.B);
  inputs.C = far(C, compact.inputs.C);
  inputs.dt = far(dt, compact.inputs.dt);
  inputs.A = TensorView(A.data(), DType::kF32, {h}, kGpu);
  stream.copy_to_device(A.data(), compact.inputs.A.data, A.size());
  outputs.y = far(y, compact.outputs.y);
  forward(inputs, outputs, with({}), stream.get());

  const testkit::OwnedTensor got(DType::kBF16, std::array<std::int64_t, 4>{1, kLast, h, p});
  stream.copy_to_host(got.view().data, y.data() + bytes(l - kLast, h * p), bytes(kLast, h * p));
  run(compact);
  expect_close(compact, testkit::Output::kY, got.view(), compact.outputs.y);
}

INSTANTIATE_TEST_SUITE_P(, Large, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
