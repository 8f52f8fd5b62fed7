// The program on a GPU, and without one.
#include <gmock/gmock.h>

#include "cli/program.h"
#include "testkit/device_memory.h"

namespace chunkscan {
namespace {

using testing::HasSubstr;

const std::string kWhy = testkit::gpu_unavailable();

class ProgramOnGpu : public Program {
 protected:
  void SetUp() override {
    if (!kWhy.empty()) GTEST_SKIP() << kWhy;
  }
};

TEST_F(ProgramOnGpu, ChecksTheBundledLayer) {
  for (const std::string backend : {"cuda", "cuda/portable"}) {
    const Ran ran = chunkscan("check --input " + kLayer + " --json --time --backend " + backend);
    ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
    const nlohmann::json json = ran.json();
    EXPECT_THAT(std::string(json["backend"]), testing::StartsWith("cuda/"));
    EXPECT_GT(json["graph_us"], 0.0);
    EXPECT_TRUE(json["naive_us"].is_null());
  }
}

// What one device writes, the other one's check accepts.
TEST_F(ProgramOnGpu, AgreesWithTheCpuOnAFile) {
  const std::string outputs = " --return final_states,log_decay --output " + path("out");
  for (auto [writer, checker] : {std::pair{"cpu", "cuda"}, {"cuda", "cpu"}}) {
    const Ran wrote = chunkscan("run --input " + kLayer + outputs + " --backend " + writer);
    ASSERT_EQ(wrote.code, 0) << wrote.err;
    const Ran ran = chunkscan("check --input " + kLayer + " --expected " + path("out") +
                              " --json --backend " + checker);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  }
}

TEST_F(ProgramOnGpu, BenchRowsHoldSpeedAndError) {
  const Ran ran = chunkscan("bench --shape 1,1024,8,64,128,1 --repeat 5 --json --backend cuda");
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const nlohmann::json json = ran.json();
  EXPECT_GT(json["machine"]["copy_gb_per_s"], 0.0);
  EXPECT_TRUE(json["machine"]["peak_gflops"].is_null());
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["calls"], 5);
  for (const char* key : {"median_us", "fastest_us", "graph_us", "first_call_ms", "copy_share"}) {
    EXPECT_GT(row[key], 0.0) << key;
  }
  EXPECT_LE(row["err"], row["err_allowed"]);
  EXPECT_THAT(chunkscan("bench --shape 1,1024,8,64,128,1 --repeat 5 --backend cuda").out,
              HasSubstr("graph"));
}

TEST_F(Program, WithoutAGpuSaysSo) {
  if (kWhy.empty()) GTEST_SKIP() << "this machine has a GPU";
  for (const std::string backend : {"cuda", "cuda/sm90", "cuda/portable"}) {
    const std::string sentence = ": [forward] backend " + backend + ": " + kWhy;
    const std::string flag = " --backend " + backend;
    expect_refusal("check --shape 1,64,4,16,16,1" + flag, "chunkscan check" + sentence);
    expect_refusal("bench" + flag, "chunkscan bench" + sentence);
    expect_refusal("run --input " + kLayer + " --output " + path("out") + flag,
                   "chunkscan run" + sentence);
  }
}

}  // namespace
}  // namespace chunkscan
