// No option that is switched on later compiles a kernel.
#include <cstdlib>

#include "conformance/runners.h"
#include "cuda/jit.h"
#include "cuda/pack.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;

// Without the kernels that other processes have compiled.
class Compilations : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    setenv("CHUNKSCAN_CACHE", "/dev/null/no directory", 1);
    cuda::forget_packs();
    cuda::forget_code();
  }
  void TearDown() override {
    unsetenv("CHUNKSCAN_CACHE");
    Conformance::TearDown();
  }
};

CaseSpec bare(DType dtype) {
  CaseSpec spec;
  spec.dtype = dtype;
  spec.l = 150;
  spec.p = 64;
  spec.n = 128;
  spec.D = DForm::kNone;
  spec.dt_bias = spec.softplus = false;
  return spec;
}

TEST_P(Compilations, NoneForAnOption) {
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const std::uint64_t before = cuda::compilations();
    expect_right(bare(dtype), 0, "bare");
    const std::uint64_t first = cuda::compilations();
    const CudaInfo found = cuda_info();
    if (before == 0 && found.pack.empty() && !found.nvrtc.empty()) {
      EXPECT_GT(first, before) << "this process's first call";
    }

    struct Option {
      const char* what;
      void (*set)(CaseSpec&);
    };
    constexpr Option kOptions[] = {
        {"dt_bias", [](CaseSpec& spec) { spec.dt_bias = true; }},
        {"softplus", [](CaseSpec& spec) { spec.softplus = true; }},
        {"dt_limit", [](CaseSpec& spec) { spec.dt_min = 0.01f, spec.dt_max = 0.04f; }},
        {"D of each head", [](CaseSpec& spec) { spec.D = DForm::kHead; }},
        {"D of each head dimension", [](CaseSpec& spec) { spec.D = DForm::kHeadDim; }},
        {"D in x's dtype", [](CaseSpec& spec) { spec.D_dtype = spec.dtype; }},
        {"dt_bias in x's dtype", [](CaseSpec& spec) { spec.dt_bias_dtype = spec.dtype; }},
        {"initial states", [](CaseSpec& spec) { spec.initial_states = DType::kF32; }},
        {"initial states, bf16", [](CaseSpec& spec) { spec.initial_states = DType::kBF16; }},
        {"final states", [](CaseSpec& spec) { spec.final_states = DType::kF32; }},
        {"final states, f16", [](CaseSpec& spec) { spec.final_states = DType::kF16; }},
        {"log_decay", [](CaseSpec& spec) { spec.log_decay = true; }},
        {"chunk states",
         [](CaseSpec& spec) { spec.chunk_states = DType::kF32, spec.state_every = 128; }},
        {"chunk states, bf16",
         [](CaseSpec& spec) { spec.chunk_states = DType::kBF16, spec.state_every = 128; }},
    };
    // Each alone, and together with all before it.
    CaseSpec together = bare(dtype);
    for (const Option& option : kOptions) {
      CaseSpec alone = bare(dtype);
      option.set(alone);
      option.set(together);
      for (const CaseSpec& spec : {alone, together}) {
        expect_right(spec, 0, option.what);
        EXPECT_EQ(cuda::compilations(), first) << option.what << ", " << name_of(dtype);
      }
    }
    for (auto [b, l] : {std::pair<std::int64_t, std::int64_t>{3, 150}, {1, 1}, {1, 700}}) {
      CaseSpec spec = bare(dtype);
      spec.b = b;
      spec.l = l;
      expect_right(spec, 0, "sizes");
      EXPECT_EQ(cuda::compilations(), first) << "l " << l << ", " << name_of(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Compilations, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
