// chunkscan pack: kernels compiled ahead, without a GPU.
#include "cuda/pack.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "chunkscan/chunkscan.h"
#include "chunkscan/pack.h"
#include "cli/program.h"
#include "cuda/code.h"
#include "cuda/cuda_backend.h"
#include "cuda/nvrtc.h"
#include "plan.h"

namespace chunkscan {
namespace {

using testing::HasSubstr;

class PackProgram : public Program {
 protected:
  void SetUp() override {
    if (std::string why = cuda::nvrtc_unavailable(); !why.empty()) GTEST_SKIP() << why;
    setenv("CHUNKSCAN_CACHE", path("cache").c_str(), 1);
  }
  ~PackProgram() override {
    unsetenv("CHUNKSCAN_CACHE");
    cuda::set_nvrtc_path("");
  }
};

// As the flags below describe it.
Plan planned(const std::string& architecture, bool z, bool packed) {
  Inputs in;
  in.x = TensorView(nullptr, DType::kBF16, {1, 300, 2, 16});
  in.dt = TensorView(nullptr, DType::kBF16, {1, 300, 2});
  in.A = TensorView(nullptr, DType::kF32, {2});
  in.B = in.C = TensorView(nullptr, DType::kBF16, {1, 300, 1, 16});
  if (z) in.z = in.x;
  if (packed) in.cu_seqlens = TensorView(nullptr, DType::kI32, {6});
  Outputs out;
  out.y = in.x;
  Options options;
  options.architecture = architecture;
  options.chunk_size = 64;
  return make_plan(in, out, options);
}

TEST_F(PackProgram, WritesAllThatItsCallsNeed) {
  const std::string pack = path("a.pack");
  const Ran ran = chunkscan(
      "pack --shape 1,2048,2,16,16,1 --features z,varlen --chunk-size 64 "
      "--arch sm_80,sm_90a --json --output " +
      pack);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "") << "no bar where there is no terminal";
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["output"], pack);
  EXPECT_EQ(json["kernels"].front()["architecture"], "sm_80");
  EXPECT_EQ(json["kernels"].back()["architecture"], "sm_90a");

  cuda::forget_packs();
  cuda::forget_code();
  cuda::set_nvrtc_path(path("no such file"));
  load_pack(pack);
  std::size_t kernels = 0;
  for (const std::string architecture : {"sm_80", "sm_90a"}) {
    for (bool z : {false, true}) {
      for (bool packed : {false, true}) {
        for (const cuda::Step& kernel : kernels_of(planned(architecture, z, packed).data())) {
          EXPECT_FALSE(cuda::code_of(kernel.key).image.empty()) << kernel.key.body;
          ++kernels;
        }
      }
    }
  }
  EXPECT_EQ(cuda::compilations(), 0u);
  EXPECT_LE(json["kernels"].size(), kernels) << "none twice";
}

TEST_F(PackProgram, ShowsATable) {
  const Ran ran = chunkscan("pack --shape 1,64,2,16,16,1 --arch sm_80 --output " + path("a.pack"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("portable/compute_out"));
  EXPECT_THAT(ran.out, HasSubstr("a.pack: "));
}

TEST_F(PackProgram, RefusesWhatItCannotPack) {
  const std::string pack = "pack --shape 1,64,2,16,16,1 --output " + path("a.pack") + " --arch ";
  EXPECT_THAT(chunkscan(pack + "sm_10").err, HasSubstr("architecture: expected sm_80 | "));
  EXPECT_THAT(chunkscan(pack + "sm_80 --backend cpu").err, HasSubstr("got cpu"));
  EXPECT_THAT(chunkscan("pack --arch sm_80 --output " + path("a.pack")).err,
              HasSubstr("sizes: expected --shape or --model, got neither"));
  EXPECT_THAT(chunkscan("pack --shape 1,64,2,16,16,1").err, HasSubstr("is required"));
}

}  // namespace
}  // namespace chunkscan
