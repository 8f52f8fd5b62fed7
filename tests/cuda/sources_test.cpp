// The device code inside the library is the one in the tree.
#include "cuda/sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace chunkscan::cuda {
namespace {

TEST(KernelSources, AreTheFilesOfTheFolder) {
  const std::filesystem::path folder(KERNELS);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string name = entry.path().lexically_relative(folder).string();
    const auto sources = kernel_sources();
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const Source& s) { return s.name == name; });
    ASSERT_NE(source, sources.end()) << name;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(source->text, text) << name;
    EXPECT_EQ(source->text.data()[source->text.size()], '\0') << name;
  }
  EXPECT_EQ(kernel_sources().size(), files);
  EXPECT_NE(sources_hash(), 0u);
}

}  // namespace
}  // namespace chunkscan::cuda
