// `check`: passes what is right, and fails what is not.
#include <gmock/gmock.h>

#include <cmath>

#include "chunkscan/chunkscan.h"
#include "cli/program.h"
#include "io/safetensors.h"
#include "testkit/tensors.h"

namespace chunkscan {
namespace {

using testing::HasSubstr;

std::vector<std::pair<std::string, std::string>> names_and_against(const nlohmann::json& json) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const nlohmann::json& row : json["outputs"]) rows.emplace_back(row["name"], row["against"]);
  return rows;
}

TEST_F(Program, CheckOfTheBundledLayer) {
  const Ran ran = chunkscan("check --input " + kLayer + " --json");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.err, "");
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_THAT(std::string(json["plan"]), HasSubstr("b1 l1536 h8 p64 n128 g2"));
  EXPECT_THAT(names_and_against(json),
              testing::ElementsAre(
                  testing::Pair("y", "reference"), testing::Pair("final_states", "reference"),
                  testing::Pair("log_decay", "reference"), testing::Pair("y", kLayer),
                  testing::Pair("final_states", kLayer)));
  for (const nlohmann::json& row : json["outputs"]) {
    EXPECT_EQ(row["ok"], true);
    EXPECT_LE(row["rel_err"], row["allowed"]);
    EXPECT_GE(row["rounding_floor"], 0.0);
    EXPECT_TRUE(row["worst"]["index"].is_array());
    EXPECT_TRUE(row["worst"]["got"].is_number());
    EXPECT_TRUE(row["worst"]["want"].is_number());
  }
  // bf16 cannot be nearer than its own rounding.
  EXPECT_GE(json["outputs"][0]["rel_err"], json["outputs"][0]["rounding_floor"]);
  EXPECT_GT(json["outputs"][0]["rounding_floor"], 1e-3);
}

TEST_F(Program, CheckTimesTheCallWhenAsked) {
  const nlohmann::json timed = chunkscan("check --shape 1,64,2,8,8,1 --time --json").json();
  EXPECT_GT(timed["median_us"], 0.0);
  EXPECT_GT(timed["naive_us"], 0.0);
  EXPECT_NEAR(timed["tokens_per_s"], 64e6 / double(timed["median_us"]), 1.0);
  EXPECT_FALSE(chunkscan("check --shape 1,64,2,8,8,1 --json").json().contains("median_us"));
  EXPECT_THAT(chunkscan("check --shape 1,64,2,8,8,1 --time").out,
              testing::AllOf(HasSubstr("tokens/s"), HasSubstr("token by token")));
}

TEST_F(Program, CheckFailsOnAWrongExpectedValue) {
  io::Safetensors layer = io::read_safetensors(kLayer);
  const TensorView y = layer.tensors.at("y").view();
  testkit::set(y, {0, 1000, 3, 5}, 1e4);
  io::write_safetensors(path("wrong"), layer.tensors, layer.metadata);
  const Ran ran = chunkscan("check --input " + path("wrong") + " --json");
  EXPECT_EQ(ran.code, 1);
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["ok"], false);
  const nlohmann::json& row = json["outputs"][3];
  EXPECT_EQ(row["ok"], false);
  EXPECT_EQ(row["worst"]["index"], nlohmann::json({0, 1000, 3, 5}));
  EXPECT_EQ(row["worst"]["want"], 1e4);
  EXPECT_EQ(json["outputs"][0]["ok"], true) << "the reference does not read y";

  const Ran text = chunkscan("check --input " + path("wrong"));
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("(0,1000,3,5)"));
  EXPECT_THAT(text.out, HasSubstr("4 of 5 within bounds: FAILED"));
}

TEST_F(Program, CheckFailsWhenTheOptionsAreNotTheFiles) {
  EXPECT_EQ(chunkscan("check --input " + kLayer + " --dt-softplus false").code, 1);
}

TEST_F(Program, CheckOfAnExpectedValueWithAnotherShape) {
  io::Safetensors layer = io::read_safetensors(kLayer);
  layer.tensors.at("y").shape = {1536, 1, 8, 64};
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  expect_refusal("check --input " + path("layer"),
                 "chunkscan check: " + path("layer") +
                     ": y: expected shape (1, 1536, 8, 64), got (1536, 1, 8, 64)");
}

TEST_F(Program, CheckOfAnExpectedFileWithoutOutputs) {
  io::write_safetensors(path("empty"), {}, {});
  expect_refusal(
      "check --input " + kLayer + " --expected " + path("empty"),
      "chunkscan check: " + path("empty") +
          ": file: expected y, final_states, chunk_states or log_decay, got none of them");
}

TEST_F(Program, CheckOfRandomNumbers) {
  const std::string sizes = "check --shape 1,300,6,20,24,3 --json ";
  for (const std::string flags :
       {"--dtype f32", "--dtype bf16", "--dtype f16 --features none", "--features D_head_dim,z",
        "--features D,z,dt_bias,softplus,initial_states,varlen --state-every 40",
        "--features seq_idx,softplus,dt_bias", "--state-dtype bf16 --chunk-size 32",
        "--config staged --threads 2", "--config recurrence", "--backend reference"}) {
    const Ran ran = chunkscan(sizes + flags);
    EXPECT_EQ(ran.code, 0) << flags << "\n" << ran.out << ran.err;
  }
}

TEST_F(Program, CheckDependsOnTheSeed) {
  const std::string check = "check --shape 1,100,2,16,16,1 --json --seed ";
  EXPECT_EQ(chunkscan(check + "5").out, chunkscan(check + "5").out);
  EXPECT_NE(chunkscan(check + "5").out, chunkscan(check + "6").out);
}

TEST_F(Program, CheckOfAnEmptyBatch) {
  EXPECT_EQ(chunkscan("check --shape 0,64,4,16,16,1").code, 0);
  EXPECT_EQ(chunkscan("check --shape 1,0,4,16,16,1").code, 0);
}

}  // namespace
}  // namespace chunkscan
