// From a key to code, through memory, disk and NVRTC.
#include <filesystem>
#include <fstream>
#include <memory>

#include "cuda/cache.h"
#include "cuda/child.h"
#include "cuda/fixture.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;

class Code : public Jit {
 protected:
  void SetUp() override {
    if (!nvrtc_unavailable().empty()) GTEST_SKIP() << nvrtc_unavailable();
  }
};

TEST(Source, IsOneKernelAroundTheBody) {
  EXPECT_EQ(source_of(fill_key(4)),
            "#include \"fill.cuh\"\n"
            "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
            "chunkscan_kernel(const __grid_constant__ chunkscan::FillParams params) {\n"
            "  chunkscan::fill<4>(params);\n"
            "}\n");
}

TEST_F(Code, IsCompiledOnceInAProcess) {
  setenv("CHUNKSCAN_CACHE", "off", 1);
  const std::uint64_t before = compilations();
  const Compiled first = code_of(fill_key());
  EXPECT_EQ(code_of(fill_key()).image, first.image);
  EXPECT_EQ(compilations(), before + 1);
  code_of(fill_key(2));
  EXPECT_EQ(compilations(), before + 2);
}

TEST_F(Code, ComesFromTheDiskInTheNext) {
  const Compiled first = code_of(fill_key());
  forget();
  const std::uint64_t before = compilations();
  EXPECT_EQ(code_of(fill_key()).image, first.image);
  EXPECT_EQ(compilations(), before);
}

TEST_F(Code, DamagedOnTheDiskIsCompiledAgain) {
  const Compiled first = code_of(fill_key());
  for (const auto& entry : std::filesystem::directory_iterator(path("cache"))) {
    std::filesystem::resize_file(entry.path(), 200);
  }
  for (const std::uint64_t compiled : {1, 0}) {
    forget();
    const std::uint64_t before = compilations();
    EXPECT_EQ(code_of(fill_key()).image, first.image);
    EXPECT_EQ(compilations(), before + compiled);
  }
}

TEST_F(Code, NeedsNoDirectory) {
  setenv("CHUNKSCAN_CACHE", "/proc/none", 1);
  EXPECT_FALSE(code_of(fill_key()).image.empty());
}

TEST_F(Code, ManyInParallel) {
  std::vector<KernelKey> keys;
  for (int i = 0; i < 12; ++i) keys.push_back(fill_key(1 + i % 6, i % 2 == 0 ? "sm_80" : "sm_90a"));
  const std::uint64_t before = compilations();
  const std::vector<Compiled> codes = codes_of(keys);
  EXPECT_EQ(compilations(), before + 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(codes[i].image, codes[i + 6].image);
  EXPECT_NE(codes[0].image, codes[2].image);
  EXPECT_TRUE(codes_of({}).empty());
}

TEST_F(Code, OneFailureOfManyIsTheSentence) {
  std::vector<KernelKey> keys = {fill_key(1), fill_key(2), fill_key(3)};
  keys[1].body = "chunkscan::missing";
  EXPECT_THAT(sentence_of([&] { codes_of(keys); }), HasSubstr("missing"));
  EXPECT_THAT(sentence_of([&] { code_of(keys[1]); }), HasSubstr("missing")) << "the same again";
  EXPECT_EQ(sentence_of([&] { code_of(keys[0]); }), "");
}

TEST_F(Code, WithoutACompilerIsASentence) {
  code_of(fill_key());
  forget();
  without_nvrtc();
  EXPECT_EQ(sentence_of([] { code_of(fill_key()); }), "[forward] cuda: " + nvrtc_unavailable());
}

TEST_F(Code, ProcessesMayCompileAtOnce) {
  std::vector<std::unique_ptr<Child>> children;
  for (int process = 0; process < 3; ++process) {
    children.push_back(std::make_unique<Child>([] { return text_of(code_of(fill_key(8))); }));
  }
  std::vector<std::string> said;
  for (const auto& child : children) said.push_back(child->said());
  const Compiled own = code_of(fill_key(8));
  for (const std::string& code : said) EXPECT_EQ(code, text_of(own));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("cache")), {}), 1);
}

TEST(Driver, TooOldForTheCode) {
  Compiled code;
  code.compiler = 13020;
  EXPECT_EQ(refuses_code(code, 13000), "") << "cubins need the major version alone";
  EXPECT_THAT(refuses_code(code, 12080), HasSubstr("expected a driver for CUDA 13.0 or later"));
  code.ptx = true;
  EXPECT_EQ(refuses_code(code, 13020), "");
  EXPECT_EQ(refuses_code(code, 13000),
            "expected a driver for CUDA 13.2 or later, which NVRTC 13.2's kernels need, "
            "got one for CUDA 13.0");
}

}  // namespace
}  // namespace chunkscan::cuda
