// `run`: a file in, a file out.
#include <gmock/gmock.h>

#include <array>

#include "chunkscan/chunkscan.h"
#include "cli/program.h"
#include "io/safetensors.h"
#include "testkit/tensors.h"

namespace chunkscan {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Shape = std::vector<std::int64_t>;

class RunTest : public Program {
 protected:
  std::string run(const std::string& input, const std::string& flags = "") const {
    return "run --input " + input + " --output " + path("out") + " " + flags;
  }
  std::string refused_with(const std::string& sentence) const {
    return "chunkscan run: " + sentence;
  }
};

TEST_F(RunTest, WritesWhatWasAsked) {
  const Ran ran = chunkscan(run(kLayer,
                                "--return final_states,chunk_states,log_decay "
                                "--state-every 500 --state-dtype bf16 --json"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["tensors"], nlohmann::json({"y", "final_states", "chunk_states", "log_decay"}));
  EXPECT_GT(json["first_call_ms"], 0.0);

  const io::Safetensors out = io::read_safetensors(path("out"));
  ASSERT_EQ(out.tensors.size(), 4u);
  EXPECT_EQ(out.tensors.at("y").shape, (Shape{1, 1536, 8, 64}));
  EXPECT_EQ(out.tensors.at("y").dtype, DType::kBF16);
  EXPECT_EQ(out.tensors.at("final_states").shape, (Shape{1, 8, 64, 128}));
  EXPECT_EQ(out.tensors.at("final_states").dtype, DType::kBF16);
  EXPECT_EQ(out.tensors.at("chunk_states").shape, (Shape{1, 3, 8, 64, 128}));
  EXPECT_EQ(out.tensors.at("log_decay").shape, (Shape{1, 8}));
  EXPECT_EQ(out.metadata.at("chunkscan_version"), version());
  EXPECT_EQ(out.metadata.at("backend"), json["backend"]);
  EXPECT_EQ(out.metadata.at("config"), json["config"]);
  EXPECT_EQ(out.metadata.at("plan"), json["plan"]);
  EXPECT_EQ(out.metadata.at("state_every"), "500");
}

TEST_F(RunTest, WritesYAloneAndTellsPeople) {
  const Ran ran = chunkscan(run(kLayer));
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, StartsWith("plan   b1 l1536 h8 p64 n128 g2 x:bf16"));
  EXPECT_THAT(ran.out, EndsWith("wrote  " + path("out") + ": y\n"));
  EXPECT_EQ(ran.err, "") << "no sign of progress where stderr is no terminal";
  EXPECT_EQ(io::read_safetensors(path("out")).tensors.size(), 1u);
}

TEST_F(RunTest, ConfigAndBackendAreTheOnesThatRan) {
  const nlohmann::json forced = chunkscan(run(kLayer, "--config staged,q=64 --json")).json();
  EXPECT_THAT(std::string(forced["config"]), StartsWith("staged,q=64"));
  const nlohmann::json reference = chunkscan(run(kLayer, "--backend reference --json")).json();
  EXPECT_EQ(reference["backend"], "reference");
}

TEST_F(RunTest, OwnOutputChecksAgainstTheSameCall) {
  ASSERT_EQ(chunkscan(run(kLayer,
                          "--return final_states,chunk_states,log_decay "
                          "--state-every 100"))
                .code,
            0);
  const Ran check = chunkscan("check --input " + kLayer + " --expected " + path("out") +
                              " --state-every 100 --json");
  EXPECT_EQ(check.code, 0) << check.out;
  const nlohmann::json json = check.json();
  int compared = 0;
  for (const nlohmann::json& row : json["outputs"]) compared += row["against"] == path("out");
  EXPECT_EQ(compared, 4);
  expect_refusal("check --input " + kLayer + " --expected " + path("out"),
                 "chunkscan check: " + path("out") +
                     ": chunk_states: expected --state-every beside it, got none");
}

TEST_F(RunTest, FinalStatesGoInAsInitialStates) {
  // The second half, from the first half's state, equals the second half of the whole.
  const io::Safetensors layer = io::read_safetensors(kLayer);
  const auto half = [&](std::int64_t begin, const std::string& name, const io::Tensor* states) {
    std::map<std::string, io::Tensor> tensors = layer.tensors;
    tensors.erase("y");
    tensors.erase("final_state");
    for (const char* by_token : {"x", "dt", "B", "C", "z"}) {
      io::Tensor& tensor = tensors.at(by_token);
      const std::size_t skipped = tensor.bytes() / 1536 * static_cast<std::size_t>(begin);
      tensor.data = static_cast<std::byte*>(tensor.data) + skipped;
      tensor.shape[1] = 768;
    }
    if (states != nullptr) tensors["initial_states"] = *states;
    io::write_safetensors(path(name), tensors, layer.metadata);
    return path(name);
  };
  ASSERT_EQ(chunkscan(run(half(0, "first", nullptr), "--return final_states")).code, 0);
  const io::Safetensors first = io::read_safetensors(path("out"));
  const std::string second = half(768, "second", &first.tensors.at("final_states"));

  std::map<std::string, io::Tensor> expected = layer.tensors;
  std::erase_if(expected, [](const auto& entry) {
    return entry.first != "y" && entry.first != "final_state";
  });
  io::Tensor& y = expected.at("y");
  y.data = static_cast<std::byte*>(y.data) + y.bytes() / 2;
  y.shape[1] = 768;
  io::write_safetensors(path("expected"), expected, {});
  const Ran check = chunkscan("check --input " + second + " --expected " + path("expected"));
  EXPECT_EQ(check.code, 0) << check.out << check.err;
}

TEST_F(RunTest, PackedSequencesHaveAStateEach) {
  io::Safetensors layer = io::read_safetensors(kLayer);
  std::array<std::int32_t, 4> offsets = {0, 700, 700, 1500};
  layer.tensors["cu_seqlens"] = {DType::kI32, {4}, offsets.data()};
  io::write_safetensors(path("packed"), layer.tensors, layer.metadata);
  ASSERT_EQ(chunkscan(run(path("packed"), "--return final_states,log_decay")).code, 0);
  const io::Safetensors out = io::read_safetensors(path("out"));
  EXPECT_EQ(out.tensors.at("final_states").shape, (Shape{3, 8, 64, 128}));
  EXPECT_EQ(testkit::get(out.tensors.at("log_decay").view(), {1, 0}), 0.0);

  offsets[1] = 1600;
  io::write_safetensors(path("packed"), layer.tensors, layer.metadata);
  const Ran bad = chunkscan(run(path("packed")));
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("[forward] cu_seqlens: expected"));
}

TEST_F(RunTest, RefusesWhatTheFileLacks) {
  for (const std::string name : {"x", "dt", "A", "B", "C"}) {
    const std::string file = layer_without(name);
    expect_refusal(run(file), refused_with(file + ": tensor \"" + name +
                                           "\": expected x, dt, A, B and C in the file, "
                                           "got none of that name"));
  }
  for (const std::string name : {"D", "z", "dt_bias", "y"}) {
    EXPECT_EQ(chunkscan(run(layer_without(name))).code, 0) << name;
  }
}

TEST_F(RunTest, RefusesANameThatMeansNothing) {
  io::Safetensors layer = io::read_safetensors(kLayer);
  layer.tensors["dt_biass"] = layer.tensors.at("dt_bias");
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  expect_refusal(run(path("layer")),
                 refused_with(path("layer") +
                              ": tensor \"dt_biass\": expected a name out of x, dt, A, B, C, D, z, "
                              "dt_bias, initial_states, seq_idx, cu_seqlens, y, final_states, "
                              "chunk_states, log_decay, got this one"));
}

TEST_F(RunTest, RefusesTensorsThatDoNotFit) {
  io::Safetensors layer = io::read_safetensors(kLayer);
  layer.tensors["z"] = layer.tensors.at("B");
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  const Ran ran = chunkscan(run(path("layer")));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, StartsWith("chunkscan run: [forward] z: expected shape"));

  // Shapes that follow from a scalar x must not be looked for in it.
  layer.tensors["x"] = {DType::kF32, {}, layer.tensors.at("A").data};
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  EXPECT_THAT(chunkscan(run(path("layer"),
                            "--return final_states,chunk_states,log_decay "
                            "--state-every 1"))
                  .err,
              StartsWith("chunkscan run: [forward] x: expected shape (b, l, h, p)"));
}

TEST_F(RunTest, RefusesATruncatedFile) {
  const std::string bytes = read_bytes(kLayer);
  const std::string file = write_bytes("short", bytes.substr(0, bytes.size() - 1));
  const Ran ran = chunkscan(run(file));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err,
              StartsWith("chunkscan run: " + file + ": tensor \"z\": expected data within"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  expect_refusal(run(path("absent")),
                 refused_with(path("absent") + ": cannot be opened: No such file or directory"));
}

TEST_F(RunTest, RefusesBadMetadataAndFlags) {
  std::string file = layer_with_metadata("dt_softplus", "maybe");
  expect_refusal(run(file),
                 refused_with(file + ": metadata \"dt_softplus\": expected true | false, "
                                     "got \"maybe\""));
  file = layer_with_metadata("dt_limit", "0.1");
  expect_refusal(run(file), refused_with(file + ": metadata \"dt_limit\": expected two numbers "
                                                "MIN,MAX such as 0.0,inf, got \"0.1\""));
  expect_refusal(run(kLayer, "--dt-limit 0,nan"),
                 refused_with("--dt-limit: expected a number, got \"nan\""));
  expect_refusal(run(kLayer, "--return y"),
                 refused_with("--return: expected names out of final_states, chunk_states, "
                              "log_decay, got \"y\""));
  expect_refusal(
      run(kLayer, "--return chunk_states"),
      refused_with("[forward] state_every: expected at least 1 with chunk_states, got 0"));
}

TEST_F(RunTest, FlagsWinOverMetadata) {
  const std::string file = layer_with_metadata("dt_limit", "0.01, 0.1");
  const auto final_states = [&](const std::string& flags) {
    EXPECT_EQ(chunkscan(run(file, "--return final_states " + flags)).code, 0);
    const io::Safetensors out = io::read_safetensors(path("out"));
    return testkit::OwnedTensor::copy_of(out.tensors.at("final_states").view());
  };
  const testkit::OwnedTensor limited = final_states("");
  const testkit::OwnedTensor same = final_states("--dt-limit 0.01,0.1");
  const testkit::OwnedTensor unlimited = final_states("--dt-limit 0.0,inf");
  EXPECT_TRUE(testkit::same_bits(limited.view(), same.view()));
  EXPECT_FALSE(testkit::same_bits(limited.view(), unlimited.view()));
}

TEST_F(RunTest, OutputThatCannotBeWritten) {
  const std::string missing = path("no/such/out");
  expect_refusal("run --input " + kLayer + " --output " + missing,
                 refused_with(missing + ": cannot be written: No such file or directory"));
  expect_refusal("run --input " + kLayer + " --output /dev/null",
                 refused_with("/dev/null: file: expected a regular file or a free name, "
                              "got a directory, pipe or device"));
  std::filesystem::create_symlink(path("nowhere"), path("link"));
  expect_refusal("run --input " + kLayer + " --output " + path("link"),
                 refused_with(path("link") + ": file: expected a regular file or a free name, "
                                             "got a symbolic link to nothing"));
  EXPECT_EQ(files(), 1) << "the link alone";
}

// Before anything is read, so before anything is computed.
TEST_F(RunTest, OutputThatCannotBeWrittenIsSeenFirst) {
  const std::string missing = path("no/such/out");
  expect_refusal("run --input " + path("absent") + " --output " + missing,
                 refused_with(missing + ": cannot be written: No such file or directory"));
}

TEST_F(RunTest, WritesThroughALinkToAFile) {
  std::filesystem::copy_file(kLayer, path("target"));
  std::filesystem::create_symlink(path("target"), path("out"));
  EXPECT_EQ(chunkscan(run(kLayer)).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(path("out")));
  EXPECT_EQ(io::read_safetensors(path("target")).tensors.size(), 1u);
}

TEST_F(RunTest, ReplacesItsOwnInput) {
  std::filesystem::copy_file(kLayer, path("out"));
  EXPECT_EQ(chunkscan(run(path("out"))).code, 0);
  EXPECT_EQ(io::read_safetensors(path("out")).tensors.size(), 1u);
  EXPECT_EQ(files(), 1);
}

TEST_F(RunTest, OutputHasAName) {
  const Ran ran = chunkscan(std::string("run --input ") + kLayer + " --output ''");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--output: expected the name of a file"));
}

}  // namespace
}  // namespace chunkscan
