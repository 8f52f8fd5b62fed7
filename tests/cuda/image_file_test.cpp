// Files of kernels: what was written comes back, and a stranger's file does no harm.
#include "cuda/image_file.h"

#include <cstring>

#include "cuda/fixture.h"
#include "cuda/hash.h"
#include "cuda/sources.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;

using ImageFileTest = Jit;

Image image_of(int per_thread, const std::string& bytes, bool ptx = false) {
  Image image = {fill_key(per_thread), {}};
  image.code.image.assign(bytes.begin(), bytes.end());
  image.code.ptx = ptx;
  image.code.compiler = 13000;
  return image;
}

std::string two_images() {
  const Image images[] = {image_of(1, "the first"), image_of(2, "the second, longer", true)};
  return encode(images);
}

TEST_F(ImageFileTest, GivesBackWhatWasWritten) {
  const ImageFile file(write_bytes("a.pack", two_images()));
  EXPECT_EQ(file.size(), 2u);
  const auto first = file.find(fill_key(1));
  ASSERT_TRUE(first);
  EXPECT_EQ(text_of(*first), "the first");
  EXPECT_FALSE(first->ptx);
  EXPECT_EQ(first->compiler, 13000);
  const auto second = file.find(fill_key(2));
  ASSERT_TRUE(second);
  EXPECT_EQ(text_of(*second), "the second, longer");
  EXPECT_TRUE(second->ptx);
}

TEST_F(ImageFileTest, EveryPartOfAKeyCounts) {
  const ImageFile file(write_bytes("a.pack", two_images()));
  for (auto change :
       {+[](KernelKey& key) { key.file = "portable/fill.cuh"; },
        +[](KernelKey& key) { key.body += " "; }, +[](KernelKey& key) { key.params = "P"; },
        +[](KernelKey& key) { key.threads = 256; }, +[](KernelKey& key) { key.min_blocks = 2; },
        +[](KernelKey& key) { key.architecture = "sm_80"; }}) {
    KernelKey key = fill_key(1);
    change(key);
    EXPECT_FALSE(file.find(key)) << key.body;
  }
}

TEST_F(ImageFileTest, NoImagesAreAFileToo) {
  const ImageFile file(write_bytes("a.pack", encode({})));
  EXPECT_EQ(file.size(), 0u);
  EXPECT_FALSE(file.find(fill_key()));
}

TEST_F(ImageFileTest, EveryTruncationIsRefused) {
  const std::string whole = two_images();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string file = write_bytes("a.pack", whole.substr(0, bytes));
    EXPECT_THAT(sentence_of([&] { ImageFile{file}; }),
                HasSubstr("a.pack: expected a pack of this version of chunkscan, got"))
        << bytes;
  }
  const std::string file = write_bytes("a.pack", whole + "x");
  EXPECT_THAT(sentence_of([&] { ImageFile{file}; }), HasSubstr("cut or extended"));
}

TEST_F(ImageFileTest, NoChangedByteGivesOtherCode) {
  const std::string whole = two_images();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      try {
        const auto code = ImageFile(write_bytes("a.pack", bytes)).find(fill_key(1));
        EXPECT_EQ(code ? text_of(*code) : "the first", "the first") << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
      }
    }
  }
}

// Sizes that lie, with checksums that are right: what somebody would write who wants to do harm.
TEST_F(ImageFileTest, ForgedSizesAreRefused) {
  const std::string whole = two_images();
  constexpr std::size_t kHeader = 48, kChecksum = 40;
  const auto word_at = [](std::string& bytes, std::size_t at) {
    return [&bytes, at](std::uint64_t value) { std::memcpy(bytes.data() + at, &value, 8); };
  };
  std::uint64_t index_bytes = 0;
  std::memcpy(&index_bytes, whole.data() + 24, 8);
  const std::uint64_t huge[] = {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 32,
                                whole.size() + 1, 0x00000000ffffffffu};
  // The header's sizes and count, the first row's place and size, its lengths of texts.
  for (const std::size_t at : {16, 24, 32, 48, 56, 88, 96}) {
    for (const std::uint64_t value : huge) {
      std::string bytes = whole;
      word_at(bytes, at)(value);
      word_at(bytes, kChecksum)(0);
      const std::string_view view = bytes;
      const std::uint64_t sum =
          hash_bytes(view.substr(kHeader, index_bytes), hash_bytes(view.substr(0, kHeader)));
      word_at(bytes, kChecksum)(sum);
      const std::string file = write_bytes("a.pack", bytes);
      EXPECT_NE(sentence_of([&] { ImageFile{file}; }), "") << at << " " << value;
    }
  }
}

TEST_F(ImageFileTest, OtherSourcesAreRefused) {
  std::string bytes = two_images();
  const std::uint64_t sources = sources_hash() + 1, zero = 0;
  std::memcpy(bytes.data() + 8, &sources, 8);
  std::memcpy(bytes.data() + 40, &zero, 8);
  std::uint64_t index_bytes = 0;
  std::memcpy(&index_bytes, bytes.data() + 24, 8);
  const std::string_view view = bytes;
  const std::uint64_t sum =
      hash_bytes(view.substr(48, index_bytes), hash_bytes(view.substr(0, 48)));
  std::memcpy(bytes.data() + 40, &sum, 8);
  const std::string file = write_bytes("a.pack", bytes);
  EXPECT_THAT(sentence_of([&] { ImageFile{file}; }), HasSubstr("got another version's"));
}

TEST_F(ImageFileTest, WhatIsNoFileIsRefused) {
  EXPECT_THAT(sentence_of([&] { ImageFile(path("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(sentence_of([&] { ImageFile(path(".")); }), HasSubstr("something that is no file"));
  EXPECT_THAT(sentence_of([] { ImageFile("/dev/zero"); }), HasSubstr("something that is no file"));
}

TEST_F(ImageFileTest, ReplacedWhileOpenGivesTheOldCode) {
  const std::string name = write_bytes("a.pack", two_images());
  const ImageFile file(name);
  std::filesystem::remove(name);
  EXPECT_TRUE(file.find(fill_key(1)));
}

TEST_F(ImageFileTest, CutWhileOpenGivesNothing) {
  const std::string name = write_bytes("a.pack", two_images());
  const ImageFile file(name);
  std::filesystem::resize_file(name, 100);
  EXPECT_FALSE(file.find(fill_key(1)));
}

}  // namespace
}  // namespace chunkscan::cuda
