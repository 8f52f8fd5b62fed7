// `bench`: its rows, not its speed.
#include <gmock/gmock.h>

#include "cli/program.h"

namespace chunkscan {
namespace {

using testing::HasSubstr;

TEST_F(Program, BenchRowsHoldSpeedAndError) {
  const Ran ran = chunkscan("bench --shape 1,200,4,32,64,2 --dtype f32,bf16 --repeat 3 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const nlohmann::json json = ran.json();
  EXPECT_GT(json["machine"]["peak_gflops"], 0.0);
  EXPECT_GT(json["machine"]["copy_gb_per_s"], 0.0);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["dtype"], "f32");
  EXPECT_EQ(json["rows"][1]["dtype"], "bf16");
  for (const nlohmann::json& row : json["rows"]) {
    EXPECT_EQ(row["shape"], nlohmann::json({1, 200, 4, 32, 64, 2}));
    EXPECT_EQ(row["err_shape"], row["shape"]);
    EXPECT_EQ(row["features"], nlohmann::json({"D", "dt_bias", "softplus"}));
    EXPECT_EQ(row["calls"], 3);
    EXPECT_EQ(row["ok"], true);
    EXPECT_GT(row["err"], 0.0);
    EXPECT_LE(row["err"], row["err_allowed"]);
    EXPECT_GT(row["naive_us"], 0.0);
    EXPECT_GT(row["first_call_ms"], 0.0);
    EXPECT_LE(row["fastest_us"], row["median_us"]);
    for (const char* key : {"name", "backend", "config", "plan"}) {
      EXPECT_TRUE(row[key].is_string()) << key;
    }
    // 200 tokens; 64 n g + 64 p h + 4 h p n = 49152 operations each, whatever q is.
    const double seconds = row["median_us"].get<double>() * 1e-6;
    EXPECT_NEAR(row["tokens_per_s"].get<double>() * seconds, 200.0, 1e-6);
    EXPECT_NEAR(row["gflops"].get<double>() * seconds, 200 * 49152e-9, 1e-12);
    EXPECT_NEAR(row["peak_share"].get<double>() * json["machine"]["peak_gflops"].get<double>(),
                row["gflops"], 1e-9);
  }
  // x and y 4 x 32, B and C 2 x 64, dt 4, each token.
  const nlohmann::json& f32 = json["rows"][0];
  EXPECT_NEAR(f32["gb_per_s"].get<double>() * f32["median_us"].get<double>() * 1e3,
              200 * (2 * 128 + 2 * 128 + 4) * 4, 1e-3);
}

TEST_F(Program, BenchChecksLargeCasesOnFewerTokensAndSaysSo) {
  const std::string bench = "bench --shape 2,1100,32,64,256,1 --repeat 1 ";
  const nlohmann::json row = chunkscan(bench + "--json").json()["rows"][0];
  EXPECT_EQ(row["err_shape"], nlohmann::json({1, 1100, 32, 64, 256, 1}));
  EXPECT_THAT(chunkscan(bench).out, HasSubstr("b 1, l 1100"));
}

TEST_F(Program, BenchOfAModelWithTheFlagsOfACall) {
  const nlohmann::json row = chunkscan(
                                 "bench --model falcon-h1-tiny-90m --seqlen 64 --repeat 1 "
                                 "--threads 1 --config staged --json")
                                 .json()["rows"][0];
  EXPECT_EQ(row["name"], "falcon-h1-tiny-90m");
  EXPECT_EQ(row["threads"], 1);
  EXPECT_THAT(std::string(row["config"]), testing::StartsWith("staged"));
}

TEST_F(Program, BenchOfALayout) {
  const std::string bench = "bench --shape 1,64,4,16,16,1 --repeat 1 --json --layout ";
  for (const char* layout : {"rows", "projection", "tokens", "tokens_x", "tokens_BC", "strided"}) {
    const Ran ran = chunkscan(bench + layout);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.json()["rows"][0]["layout"], layout);
  }
  EXPECT_THAT(chunkscan(bench + "columns").err, HasSubstr("--layout: expected rows | projection"));
}

TEST_F(Program, BenchForPeopleNeverShowsASpeedWithoutItsError) {
  const Ran ran = chunkscan("bench --shape 1,64,4,16,16,1 --repeat 1 --backend reference");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex("tokens/s .* error"));
  EXPECT_THAT(ran.out, HasSubstr("reference [recurrence"));
}

TEST_F(Program, BenchTimesEveryCandidate) {
  const std::string what = "bench --shape 1,100,4,16,32,2 --repeat 1 --candidates";
  const Ran ran = chunkscan(what + " --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json rows = ran.json()["rows"];
  const Ran plan = chunkscan("plan --shape 1,100,4,16,32,2 --json");
  EXPECT_EQ(rows[0]["config"], plan.json()["config"]);
  EXPECT_GT(rows.size(), 5u);
  const Ran people = chunkscan(what);
  EXPECT_THAT(people.out, HasSubstr("the default"));
  EXPECT_THAT(people.out, HasSubstr("1.00x"));
}

}  // namespace
}  // namespace chunkscan
