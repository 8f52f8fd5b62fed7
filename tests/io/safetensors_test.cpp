#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "scratch.h"

namespace chunkscan::io {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class SafetensorsTest : public Scratch {
 protected:
  static void expect_same(const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(a.shape, b.shape);
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data, b.data, a.bytes()), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data) % size_of(b.dtype), 0u);
  }

  static std::string refusal_of_write(const std::string& path,
                                      const std::map<std::string, Tensor>& tensors) {
    try {
      write_safetensors(path, tensors, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "(written)";
  }

  std::vector<std::uint8_t> bytes_ = [] {
    std::vector<std::uint8_t> bytes(1 << 20);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    return bytes;
  }();
};

TEST_F(SafetensorsTest, RoundTripOfEveryDtypeScalarsAndEmptyTensors) {
  const std::map<std::string, std::string> metadata = {{"dt_softplus", "true"}, {"\"\n", "é"}};
  std::map<std::string, Tensor> tensors;
  for (DType dtype :
       {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kI64}) {
    const std::string name = name_of(dtype);
    tensors[name] = {dtype, {3, 5}, bytes_.data()};
    tensors[name + ".scalar"] = {dtype, {}, bytes_.data() + 64};
    tensors[name + ".empty"] = {dtype, {2, 0, 7}, bytes_.data()};
    tensors[name + ".rank5"] = {dtype, {1, 2, 1, 2, 1}, bytes_.data() + 8};
  }
  write_safetensors(path("all"), tensors, metadata);
  const Safetensors read = read_safetensors(path("all"));
  EXPECT_EQ(read.metadata, metadata);
  EXPECT_EQ(read.memory.size(), 1u) << "what we write is aligned: nothing needs a copy";
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    expect_same(tensor, read.tensors.at(name));
  }
}

TEST_F(SafetensorsTest, FileWithoutTensors) {
  write_safetensors(path("empty"), {}, {});
  EXPECT_EQ(read_bytes(path("empty")), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_THAT(read_safetensors(path("empty")).tensors, IsEmpty());
}

TEST_F(SafetensorsTest, MisalignedDataIsMoved) {
  const std::string file =
      write_file("odd",
                 R"({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},
                                         "b": {"dtype": "F64", "shape": [1], "data_offsets": [2, 10]}})",
                 "aabbbbbbbb");
  const Safetensors read = read_safetensors(file);
  const Tensor& b = read.tensors.at("b");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data) % 8, 0u);
  EXPECT_EQ(std::memcmp(b.data, "bbbbbbbb", 8), 0);
}

TEST_F(SafetensorsTest, ViewsAreRowMajorAndAScalarHasOneElement) {
  const Tensor tensor{DType::kF32, {2, 3, 4}, bytes_.data()};
  const TensorView view = tensor.view();
  EXPECT_EQ(view.data, tensor.data);
  EXPECT_EQ(view.rank, 3);
  EXPECT_THAT(view.shape, ElementsAre(2, 3, 4, 0, 0));
  EXPECT_THAT(view.strides, ElementsAre(12, 4, 1, 0, 0));
  EXPECT_EQ((Tensor{DType::kI64, {}, bytes_.data()}.view().elements()), 1);
}

TEST_F(SafetensorsTest, BundledLayer) {
  const Safetensors read = read_safetensors(TESTDATA "/layer3_ssd.safetensors");
  EXPECT_THAT(read.metadata,
              testing::Contains(std::pair<const std::string, std::string>("chunk_size", "128")));
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : read.tensors) shapes[name] = tensor.shape;
  using Shape = std::vector<std::int64_t>;
  EXPECT_THAT(shapes, UnorderedElementsAre(
                          std::pair("x", Shape{1, 1536, 8, 64}), std::pair("dt", Shape{1, 1536, 8}),
                          std::pair("A", Shape{8}), std::pair("B", Shape{1, 1536, 2, 128}),
                          std::pair("C", Shape{1, 1536, 2, 128}), std::pair("D", Shape{8}),
                          std::pair("z", Shape{1, 1536, 8, 64}), std::pair("dt_bias", Shape{8}),
                          std::pair("y", Shape{1, 1536, 8, 64}),
                          std::pair("final_state", Shape{1, 8, 64, 128})));
  EXPECT_EQ(read.tensors.at("x").dtype, DType::kBF16);
  EXPECT_EQ(read.tensors.at("y").dtype, DType::kF32);
}

TEST_F(SafetensorsTest, WritingReplacesTheOldFileAndLeavesNothingElse) {
  write_bytes("out", "old");
  write_safetensors(path("out"), {{"a", {DType::kF32, {2}, bytes_.data()}}}, {});
  expect_same({DType::kF32, {2}, bytes_.data()}, read_safetensors(path("out")).tensors.at("a"));
  EXPECT_EQ(files(), 1);
  struct stat status {};
  ASSERT_EQ(stat(path("out").c_str(), &status), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
}

TEST_F(SafetensorsTest, WritingThroughALinkKeepsTheLink) {
  write_bytes("target", "old");
  std::filesystem::create_symlink("target", path("link"));
  write_safetensors(path("link"), {}, {});
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_NE(read_bytes(path("target")), "old");
}

TEST_F(SafetensorsTest, AFailedWriteKeepsTheOldFileAndLeavesNothingElse) {
  write_bytes("out", "old");
  // The kernel refuses what goes beyond this size, as a full disk would.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string sentence =
      refusal_of_write(path("out"), {{"a", {DType::kF32, {1 << 18}, bytes_.data()}}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(sentence, path("out") + ": cannot be written: File too large");
  EXPECT_EQ(read_bytes(path("out")), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(SafetensorsTest, RefusesToReplaceWhatIsNoFile) {
  EXPECT_THAT(refusal_of_write("/dev/null", {}),
              EndsWith("file: expected a regular file or a free name, "
                       "got a directory, pipe or device"));
  EXPECT_THAT(refusal_of_write(path("."), {}), EndsWith("got a directory, pipe or device"));
  EXPECT_THAT(refusal_of_write(path("no/such/directory"), {}),
              EndsWith("cannot be written: No such file or directory"));
  EXPECT_THAT(refusal_of_write(path("out"), {{"\xff", {DType::kF32, {1}, bytes_.data()}}}),
              EndsWith("header: expected names and metadata in UTF-8, got other bytes"));
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace chunkscan::io
