// Packs: with one, no compiler is needed.
#include "chunkscan/pack.h"

#include <filesystem>

#include "chunkscan/backends.h"
#include "cuda/fixture.h"

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
