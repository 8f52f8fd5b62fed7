// GPUs by name, and what each is compiled for.
#include "cuda/device.h"

#include <gmock/gmock.h>

#include "cuda/driver.h"
#include "cuda/fixture.h"

namespace chunkscan::cuda {
namespace {

using testing::HasSubstr;

TEST(Device, ArchitectureOfAComputeCapability) {
  EXPECT_EQ(architecture_of(7, 5), "");
  EXPECT_EQ(architecture_of(8, 0), "sm_80");
  EXPECT_EQ(architecture_of(8, 6), "sm_86");
  EXPECT_EQ(architecture_of(8, 9), "sm_89");
  EXPECT_EQ(architecture_of(9, 0), "sm_90a");
  EXPECT_EQ(architecture_of(10, 0), "sm_100a");
  EXPECT_EQ(architecture_of(10, 3), "sm_103a");
  EXPECT_EQ(architecture_of(12, 0), "sm_120a");
  EXPECT_EQ(architecture_of(12, 1), "sm_121a");
  EXPECT_EQ(architecture_of(13, 7), "sm_137");
}

TEST(Device, ByName) {
  for (const char* name : {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a",
                           "sm_110a", "sm_120a", "sm_121a"}) {
    const DeviceInfo device = device_named(name);
    EXPECT_EQ(device.architecture, name);
    EXPECT_EQ(architecture_of(device.major, device.minor), name);
    EXPECT_GE(device.multiprocessors, 16) << name;
    EXPECT_GE(device.shared_per_block_optin, 101376) << name;
    EXPECT_EQ(device.shared_per_multiprocessor, device.shared_per_block_optin + 1024) << name;
    EXPECT_GT(device.l2_bytes, 0) << name;
    EXPECT_GT(device.memory_bytes, std::int64_t{1} << 33) << name;
    EXPECT_EQ(refuses_device(device), "") << name;
  }
  EXPECT_EQ(device_named("sm_90a").multiprocessors, 132);
  EXPECT_EQ(device_named("sm_90a").shared_per_block_optin, 232448);
  EXPECT_EQ(device_named("sm_80").shared_per_block_optin, 166912);
}

TEST(Device, UnknownNameIsRefused) {
  EXPECT_THAT(sentence_of([] { device_named("sm_90"); }),
              testing::AllOf(HasSubstr("[forward] architecture: expected sm_80 | sm_86"),
                             HasSubstr("| sm_121a, got \"sm_90\"")));
}

TEST(Device, TooOldIsRefused) {
  DeviceInfo turing;
  turing.name = "T4";
  turing.major = 7;
  turing.minor = 5;
  EXPECT_EQ(refuses_device(turing),
            "device: expected compute capability 8.0 or later, got 7.5 (T4)");
}

TEST(Device, NoDriverIsASentence) {
  const std::string why = driver_unavailable();
  if (why.empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(why, testing::MatchesRegex("expected .*, got .*"));
  EXPECT_TRUE(devices().empty());
  EXPECT_EQ(sentence_of([] { driver(); }), "[forward] cuda: " + why);
  EXPECT_EQ(sentence_of([] { ContextGuard guard(0); }), "[forward] cuda: " + why);
}

}  // namespace
}  // namespace chunkscan::cuda
