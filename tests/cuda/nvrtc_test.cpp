// The run-time compiler: every one that is installed here.
#include "cuda/nvrtc.h"

#include <filesystem>
#include <set>

#include "cuda/fixture.h"
#include "cuda/nvrtc_search.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kElf =
    "\x7f"
    "ELF";

class Nvrtc : public Jit, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    set_nvrtc_path(GetParam());
    if (!nvrtc_unavailable().empty()) GTEST_SKIP() << nvrtc_unavailable();
  }
};

TEST_P(Nvrtc, CompilesForEveryArchitectureItKnows) {
  const std::vector<int> known = nvrtc_architectures();
  for (const char* architecture :
       {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"}) {
    const Compiled code = compile(source_of(fill_key(4)), kernel_sources(), architecture);
    const int number = std::atoi(architecture + 3);
    const bool knows = std::find(known.begin(), known.end(), number) != known.end();
    EXPECT_EQ(code.ptx, !knows) << architecture;
    EXPECT_THAT(text_of(code), StartsWith(knows ? kElf : "//")) << architecture;
    EXPECT_THAT(text_of(code), HasSubstr("chunkscan_kernel")) << architecture;
    EXPECT_EQ(code.compiler, nvrtc_version());
  }
}

TEST_P(Nvrtc, NewerChipGetsPtxOfTheNewestKnown) {
  const Compiled code = compile(source_of(fill_key()), kernel_sources(), "sm_990");
  EXPECT_TRUE(code.ptx);
  EXPECT_THAT(text_of(code),
              HasSubstr(".target sm_" + std::to_string(nvrtc_architectures().back())));
}

TEST_P(Nvrtc, UsesHeadersAndOptions) {
  const Source header = {"sm90/one.cuh", "#pragma once\n__device__ int one() { return ONE; }\n"};
  const std::string option = "-DONE=1";
  const Compiled code = compile(
      "#include \"sm90/one.cuh\"\nextern \"C\" __global__ void k(int* out) { *out = one(); }\n",
      {&header, 1}, "sm_80", {&option, 1});
  EXPECT_THAT(text_of(code), StartsWith(kElf));
}

TEST_P(Nvrtc, SaysTheFirstError) {
  const Source header = {"a.cuh", "#pragma once\n\nint f() { return missing; }\n"};
  const std::string sentence = sentence_of([&] {
    compile("#include \"a.cuh\"\n", {&header, 1}, "sm_80");
  });
  EXPECT_THAT(sentence, testing::AllOf(HasSubstr("failed to compile for sm_80: a.cuh(3): error"),
                                       HasSubstr("missing"), testing::Not(HasSubstr("\n"))));
}

TEST_P(Nvrtc, RefusesWhatIsNoArchitecture) {
  for (const char* name : {"", "sm_", "sm_10", "gfx90a", "compute_90"}) {
    EXPECT_THAT(sentence_of([&] { compile("", {}, name); }),
                HasSubstr("expected an architecture that NVRTC"))
        << name;
  }
}

std::vector<std::string> installed() {
  std::set<std::string> files = {""};  // the one that the search finds
  for (const std::string& candidate : nvrtc_candidates(99)) {
    const std::filesystem::path path(candidate);
    if (path.is_absolute()) files.insert(std::filesystem::canonical(path));
  }
  return {files.begin(), files.end()};
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return info.index == 0 ? "Found" : "Installed" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, Nvrtc, testing::ValuesIn(installed()), name_of);

using NvrtcSearch = Jit;

TEST_F(NvrtcSearch, AbsenceIsASentence) {
  without_nvrtc();
  EXPECT_THAT(nvrtc_unavailable(), StartsWith("expected NVRTC 12 or 13"));
  EXPECT_EQ(nvrtc_path(), "");
  EXPECT_EQ(nvrtc_version(), 0);
  EXPECT_TRUE(nvrtc_architectures().empty());
  EXPECT_EQ(sentence_of([] { compile("", {}, "sm_80"); }),
            "[forward] cuda: " + nvrtc_unavailable());
}

TEST_F(NvrtcSearch, AnotherLibraryIsNoCompiler) {
  set_nvrtc_path("libdl.so.2");
  EXPECT_NE(nvrtc_unavailable(), "");
}

TEST_F(NvrtcSearch, FindsTheWheelsOfAVirtualEnvironment) {
  const std::filesystem::path site = path("venv/lib/python3.11/site-packages/nvidia");
  std::vector<std::string> files;
  for (const char* file : {"cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"}) {
    std::filesystem::create_directories((site / file).parent_path());
    std::ofstream(site / file) << "no library";
    files.push_back((site / file).string());
  }
  const char* before = std::getenv("VIRTUAL_ENV");
  const std::string kept = before == nullptr ? "" : before;
  setenv("VIRTUAL_ENV", path("venv").c_str(), 1);
  const std::vector<std::string> any = nvrtc_candidates(99);
  const std::vector<std::string> twelve = nvrtc_candidates(12);
  setenv("VIRTUAL_ENV", kept.c_str(), 1);
  const auto place = [](const std::vector<std::string>& list, const std::string& file) {
    return std::find(list.begin(), list.end(), file) - list.begin();
  };
  EXPECT_LT(place(any, files[0]), place(any, files[1]));
  EXPECT_LT(place(any, files[1]), static_cast<long>(any.size()));
  // A driver for CUDA 12 does not load what NVRTC 13 makes.
  EXPECT_LT(place(twelve, files[1]), place(twelve, files[0]));
  EXPECT_LT(place(twelve, files[0]), static_cast<long>(twelve.size()));
}

}  // namespace
}  // namespace chunkscan::cuda
