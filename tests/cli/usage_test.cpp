// Help, info, plan, and what the program refuses before it computes anything.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "chunkscan/chunkscan.h"
#include "cli/program.h"

namespace chunkscan {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Program, WithoutArgumentsIsHelp) {
  const Ran bare = chunkscan("");
  const Ran help = chunkscan("--help");
  EXPECT_EQ(bare.code, 0);
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(bare.out, help.out);
  EXPECT_EQ(bare.err, "");
  for (const char* subcommand : {"info", "run", "check", "bench", "plan", "Examples:"}) {
    EXPECT_THAT(help.out, HasSubstr(subcommand));
  }
}

TEST_F(Program, Version) {
  const Ran ran = chunkscan("--version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, std::string("chunkscan ") + version() + "\n");
}

TEST_F(Program, HelpOfEachSubcommand) {
  for (const std::string name : {"info", "run", "check", "bench", "plan"}) {
    const Ran ran = chunkscan(name + " --help");
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("--json"));
  }
}

TEST_F(Program, WrongUsageIsExitCode2) {
  for (const char* arguments :
       {"nonsense", "info --nonsense", "run", "run --input a", "plan --threads 0",
        "bench --repeat 0", "plan --shape 1,1,1,1,1,1 --model mamba2-130m", "plan --seqlen 5",
        "check --input a --shape 1,1,1,1,1,1", "check --input a --dtype f32", "info run"}) {
    const Ran ran = chunkscan(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_NE(ran.err, "") << arguments;
  }
}

TEST_F(Program, AStderrThatIsFullIsNoCrash) {
  const std::string command = PROGRAM " plan --shape 1 >/dev/null 2>/dev/full";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(Program, InfoAsJson) {
  const Ran ran = chunkscan("info --json");
  EXPECT_EQ(ran.code, 0);
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["version"], version());
  ASSERT_EQ(json["backends"].size(), backends().size());
  EXPECT_EQ(json["backends"].back()["name"], "reference");
  EXPECT_EQ(json["backends"].back()["available"], true);
  EXPECT_EQ(json["backends"].back()["reason"], "");
  EXPECT_EQ(json["instruction_sets"], nlohmann::json(cpu_instruction_sets()));
  EXPECT_GE(json["threads"], 1);
  EXPECT_TRUE(json["cpu"].is_string());
  const nlohmann::json cuda = json["cuda"];
  for (const std::string part : {"driver", "nvrtc", "pack", "cache"}) {
    EXPECT_FALSE(cuda[part] == "" && cuda[part + "_reason"] == "") << cuda;
  }
  EXPECT_EQ(cuda["gpus"].empty(), cuda["driver_reason"] != "") << cuda;
}

TEST_F(Program, InfoForPeople) {
  const Ran ran = chunkscan("info");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, StartsWith(std::string("chunkscan ") + version()));
  EXPECT_THAT(ran.out, HasSubstr("reference      available\n"));
  EXPECT_THAT(ran.out, HasSubstr("\ngpu driver        "));
  EXPECT_THAT(ran.out, HasSubstr("\ngpu compiler      "));
}

TEST_F(Program, LooksForAPackBesideItself) {
  std::filesystem::copy_file(PROGRAM, path("program"));
  const std::string pack = write_bytes("chunkscan.pack", "nonsense");
  ASSERT_EQ(std::system((path("program") + " info --json >" + path("info")).c_str()), 0);
  const nlohmann::json cuda = nlohmann::json::parse(read_bytes(path("info")))["cuda"];
  EXPECT_EQ(cuda["pack"], pack);
  EXPECT_THAT(std::string(cuda["pack_reason"]), HasSubstr("got another kind of file"));
}

TEST_F(Program, PlanFollowsTheFlags) {
  const std::string sizes = "plan --shape 2,300,6,64,128,3 --json ";
  const nlohmann::json forced =
      chunkscan(sizes + "--config recurrence --threads 3 --dtype f16").json();
  EXPECT_EQ(forced["backend"], "cpu");
  EXPECT_EQ(forced["threads"], 3);
  EXPECT_THAT(std::string(forced["config"]), StartsWith("recurrence"));
  EXPECT_THAT(std::string(forced["plan"]), StartsWith("b2 l300 h6 p64 n128 g3 x:f16"));
  EXPECT_TRUE(forced["workspace_bytes"].is_number_unsigned());

  const nlohmann::json reference = chunkscan(sizes + "--backend reference --features z").json();
  EXPECT_EQ(reference["backend"], "reference");
  EXPECT_THAT(std::string(reference["plan"]), HasSubstr(" z:bf16 "));
  EXPECT_THAT(std::string(reference["plan"]), testing::Not(HasSubstr("dt_bias")));
}

// It runs nothing, so the machine does not have to have it.
TEST_F(Program, PlansForAnyInstructionSet) {
  const std::string plan = "plan --shape 2,300,6,64,128,3 ";
  for (const std::string& isa : all_cpu_instruction_sets()) {
    for (const std::string& config :
         {std::string("--config walk "), std::string(), "--config isa=" + isa + " "}) {
      const nlohmann::json json = chunkscan(plan + config + "--json --arch " + isa).json();
      EXPECT_THAT(std::string(json["config"]), testing::EndsWith("isa=" + isa));
    }
  }
  expect_refusal(plan + "--config walk,isa=avx2 --arch neon",
                 "chunkscan plan: --arch: expected what --config says, isa=avx2, got \"neon\"");
  for (const std::string arch : {"sm_80", "sm_90a", "sm_120a"}) {
    const Ran ran = chunkscan(plan + "--dtype bf16 --arch " + arch);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(arch == "sm_90a" ? "cuda/sm90" : "cuda/portable"));
  }
  expect_refusal(
      plan + "--arch vax",
      "chunkscan plan: --arch: expected a GPU architecture, as sm_90a, or avx512_bf16 | avx512 | "
      "avx2 | neon | sse4 | baseline, got \"vax\"");
}

TEST_F(Program, StdoutThatCannotBeWritten) {
  for (const std::string arguments :
       {"info", "info --json", "--help", "--version", "", "plan --help",
        "plan --shape 1,64,8,64,128,1", "check --shape 1,8,2,8,8,1"}) {
    const Ran ran = chunkscan(arguments, "/dev/full");
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_THAT(ran.err, testing::EndsWith(": stdout: expected all of the output to be "
                                           "written, got an error\n"));
  }
}

TEST_F(Program, PlanKnowsTheModels) {
  const nlohmann::json plan =
      chunkscan("plan --model nemotron-h-8b --seqlen 100 --batch 3 --json").json();
  EXPECT_THAT(std::string(plan["plan"]), StartsWith("b3 l100 h128 p64 n128 g8 "));
}

TEST_F(Program, PlanForPeopleHasUnits) {
  const Ran ran = chunkscan("plan --shape 1,2048,24,64,128,1");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("\nworkspace  "));
  EXPECT_THAT(ran.out, testing::ContainsRegex("workspace  [0-9.]+ [KMG]iB\n"));
}

TEST_F(Program, PlansWhatNoMemoryHolds) {
  EXPECT_EQ(chunkscan("plan --shape 4096,1000000,8,64,128,1").code, 0);
}

TEST_F(Program, RefusesBadSizes) {
  const std::string rule = "six whole numbers b,l,h,p,n,g such as 1,2048,24,64,128,1";
  expect_refusal("plan", "chunkscan plan: sizes: expected --shape or --model, got neither");
  expect_refusal("check",
                 "chunkscan check: call: expected --input, --shape or --model, got none of them");
  expect_refusal("plan --shape 1,2,3",
                 "chunkscan plan: --shape: expected " + rule + ", got \"1,2,3\"");
  expect_refusal("plan --shape 1,2,3,4,5,x",
                 "chunkscan plan: --shape: expected a whole number, got \"x\"");
  expect_refusal("plan --shape 1,2,99999999999999999999,4,5,6",
                 "chunkscan plan: --shape: expected a whole number, got \"99999999999999999999\"");
  expect_refusal("plan --shape 1,2,3,4,5,0",
                 "chunkscan plan: --shape: expected positive sizes, got \"1,2,3,4,5,0\"");
  for (const std::string subcommand : {"plan", "check", "bench"}) {
    expect_refusal(subcommand + " --shape 1,64,24,64,128,5",
                   "chunkscan " + subcommand +
                       ": [forward] B: expected g groups that divide h = 24, got g = 5");
    // Nothing is allocated for it either.
    const Ran huge = chunkscan(subcommand + " --shape 4611686018427387904,8,8,64,128,1");
    EXPECT_EQ(huge.code, 2);
    EXPECT_THAT(huge.err, HasSubstr("[forward] x: expected at most 2^60 bytes, got"));
  }
}

TEST_F(Program, RefusesBadWords) {
  const std::string plan = "plan --shape 1,64,8,64,128,1 ";
  expect_refusal(plan + "--dtype f64",
                 "chunkscan plan: --dtype: expected bf16 | f16 | f32, got \"f64\"");
  expect_refusal(plan + "--dtype f32,bf16",
                 "chunkscan plan: --dtype: expected one of bf16 | f16 | f32, got \"f32,bf16\"");
  expect_refusal(plan + "--features D,magic",
                 "chunkscan plan: --features: expected none, or names out of D, D_head_dim, z, "
                 "dt_bias, softplus, initial_states, final_states, varlen, seq_idx, got \"magic\"");
  expect_refusal(plan + "--features D,varlen,seq_idx",
                 "chunkscan plan: --features: expected varlen or seq_idx, got both");
  expect_refusal(plan + "--features D_head_dim,D",
                 "chunkscan plan: --features: expected D or D_head_dim, got both");
  for (const std::string flags : {"check --state-every 0", "plan --chunk-size 0"}) {
    const std::string flag = flags.substr(flags.find('-'), flags.rfind(' ') - flags.find('-'));
    expect_refusal(flags, flag +
                              ": expected a whole number of at least 1, got \"0\"\n"
                              "Run with --help for more information.");
  }
  expect_refusal(plan + "--backend abacus",
                 "chunkscan plan: [forward] backend: expected cuda | cuda/sm90 | cuda/portable | "
                 "cpu | reference, got \"abacus\"");
  EXPECT_THAT(chunkscan(plan + "--config sprint").err, HasSubstr("[forward] config: expected"));
  EXPECT_THAT(chunkscan("plan --model mamba3").err,
              HasSubstr("--model: expected mamba2-130m | mamba2-370m"));
  EXPECT_THAT(chunkscan("bench --suite none").err, HasSubstr("--suite: expected cpu | "));
  EXPECT_THAT(chunkscan("plan --shape 2,64,8,64,128,1 --features varlen").err,
              HasSubstr("b = 1 together with cu_seqlens"));
}

}  // namespace
}  // namespace chunkscan
