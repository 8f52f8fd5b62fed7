// Packs: with one, no compiler is needed.
#include "chunkscan/pack.h"

#include <filesystem>

#include "chunkscan/chunkscan.h"
#include "cuda/cuda_backend.h"
#include "cuda/fixture.h"
#include "plan.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;

class Pack : public Jit {
 protected:
  void SetUp() override {
    if (!nvrtc_unavailable().empty()) GTEST_SKIP() << nvrtc_unavailable();
    setenv("CHUNKSCAN_CACHE", "off", 1);
    write_pack(keys_, path("a.pack"));
    for (const KernelKey& key : keys_) codes_.push_back(code_of(key));
    forget();
    without_nvrtc();
    before_ = compilations();
  }

  void expect_all() const {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      EXPECT_EQ(code_of(keys_[i]).image, codes_[i].image);
    }
    EXPECT_EQ(compilations(), before_);
  }

  const std::vector<KernelKey> keys_ = {fill_key(1, "sm_80"), fill_key(1), fill_key(2)};
  std::vector<Compiled> codes_;
  std::uint64_t before_ = 0;
};

// Of a call without memory; "" = for this machine's CPU.
Plan small_plan(const std::string& architecture) {
  Inputs in;
  in.x = TensorView(nullptr, DType::kF32, {1, 100, 4, 16});
  in.dt = TensorView(nullptr, DType::kF32, {1, 100, 4});
  in.A = TensorView(nullptr, DType::kF32, {4});
  in.B = in.C = TensorView(nullptr, DType::kF32, {1, 100, 1, 16});
  Outputs out;
  out.y = in.x;
  Options options;
  options.architecture = architecture;
  return make_plan(in, out, options);
}

TEST_F(Pack, OfPlansHoldsEachOfTheirKernelsOnce) {
  set_nvrtc_path("");
  const Plan plans[] = {small_plan("sm_80"), small_plan("sm_80")};
  const std::vector<Step> kernels = kernels_of(plans[0].data());
  std::size_t last = 0;
  const std::size_t count = chunkscan::write_pack(
      plans, path("b.pack"), [&](std::size_t done, std::size_t) { last = done; });
  EXPECT_EQ(count, kernels.size());
  EXPECT_GT(last, 0u);
  EXPECT_LE(last, count);
  EXPECT_GE(count, 3u);
  const std::vector<PackedKernel> listed = list_pack(path("b.pack"));
  ASSERT_EQ(listed.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(listed[i].name, name_of(kernels[i].key));
    EXPECT_THAT(listed[i].config, testing::Not(HasSubstr("chunkscan")));
    EXPECT_EQ(listed[i].architecture, "sm_80");
    EXPECT_GT(listed[i].bytes, 1000u);
  }
  forget();
  without_nvrtc();
  load_pack(path("b.pack"));
  for (const Step& kernel : kernels) EXPECT_FALSE(code_of(kernel.key).image.empty());
}

TEST_F(Pack, OfPlansWithoutKernelsIsRefused) {
  EXPECT_EQ(sentence_of([] { chunkscan::write_pack({}, "unused"); }),
            "[pack] plans: expected at least one, got none");
  const Plan plans[] = {small_plan("sm_80"), small_plan("")};
  EXPECT_EQ(sentence_of([&] { chunkscan::write_pack(plans, "unused"); }),
            "[pack] plan: expected one of a cuda/ backend, got one of cpu, which has no kernels to "
            "compile");
}

TEST_F(Pack, ByPath) {
  load_pack(path("a.pack"));
  expect_all();
  EXPECT_NE(sentence_of([] { code_of(fill_key(3)); }), "") << "not in the pack";
}

TEST_F(Pack, ByEnvironment) {
  setenv("CHUNKSCAN_PACK", path("a.pack").c_str(), 1);
  expect_all();
  EXPECT_EQ(cuda_info().pack, path("a.pack"));
  EXPECT_EQ(cuda_info().pack_reason, "");
}

TEST_F(Pack, OneThatDoesNotServeIsAReason) {
  setenv("CHUNKSCAN_PACK", write_bytes("b.pack", "nonsense").c_str(), 1);
  EXPECT_EQ(cuda_info().pack, path("b.pack"));
  EXPECT_THAT(cuda_info().pack_reason, HasSubstr("got another kind of file"));
  load_pack(path("a.pack"));
  expect_all();
}

TEST_F(Pack, LatestComesFirstAndMissingFallsThrough) {
  set_nvrtc_path("");
  write_pack(std::vector{fill_key(3)}, path("b.pack"));
  forget();
  without_nvrtc();
  before_ = compilations();
  load_pack(path("a.pack"));
  load_pack(path("b.pack"));
  expect_all();
  EXPECT_EQ(sentence_of([] { code_of(fill_key(3)); }), "");
}

TEST_F(Pack, DamagedImageIsCompiledAgain) {
  std::string bytes = read_bytes(path("a.pack"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  load_pack(write_bytes("a.pack", bytes));
  set_nvrtc_path("");
  EXPECT_EQ(code_of(keys_[2]).image, codes_[2].image);
  EXPECT_EQ(compilations(), before_ + 1);
}

TEST_F(Pack, LoadRefusesWithASentence) {
  EXPECT_THAT(sentence_of([this] { load_pack(path("none")); }),
              HasSubstr("none: expected a pack of this version of chunkscan, got No such file"));
}

TEST_F(Pack, IsWrittenWholeOrNotAtAll) {
  EXPECT_THAT(sentence_of([this] { write_pack({}, path("no/such/folder")); }),
              HasSubstr("expected a file that can be written, got No such file"));
  EXPECT_NE(sentence_of([this] { write_pack(std::vector{fill_key(9)}, path("b.pack")); }), "");
  EXPECT_FALSE(std::filesystem::exists(path("b.pack")));
}

}  // namespace
}  // namespace chunkscan::cuda
