// Plans: made without data, printable, and strict about what they run.
#include "plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "testkit/device_call.h"
#include "testkit/generate.h"
#include "testkit/shapes.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;

// Shapes without memory.
struct Shapes {
  Shapes(std::int64_t b, std::int64_t l, std::int64_t h, std::int64_t p, std::int64_t n,
         std::int64_t g, DType dtype) {
    inputs.x = TensorView(nullptr, dtype, {b, l, h, p});
    inputs.dt = TensorView(nullptr, dtype, {b, l, h});
    inputs.A = TensorView(nullptr, DType::kF32, {h});
    inputs.B = inputs.C = TensorView(nullptr, dtype, {b, l, g, n});
    outputs.y = inputs.x;
    outputs.final_states = TensorView(nullptr, DType::kF32, {b, h, p, n});
  }
  Inputs inputs;
  Outputs outputs;
};

TEST(Backends, AreListedBestFirst) {
  std::vector<std::string> names;
  for (const BackendInfo& info : backends()) {
    names.push_back(info.name);
    if (!info.name.starts_with("cuda/")) {
      EXPECT_TRUE(info.available) << info.reason;
    }
    EXPECT_EQ(info.available, info.reason.empty()) << info.reason;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"cuda/sm90", "cuda/portable", "cpu", "reference"}));
  EXPECT_FALSE(cpu_instruction_sets().empty());
}

// Each candidate is a config of its own that a plan takes as it stands; the default comes first.
TEST(Candidates, AreConfigsThatPlansTake) {
  for (const std::string architecture : {"", "sm_80", "sm_86", "sm_90a"}) {
    for (DType dtype : {DType::kBF16, DType::kF32}) {
      const Shapes shapes(2, 700, 6, 80, 128, 2, dtype);
      Options options;
      options.architecture = architecture;
      const Plan plan = make_plan(shapes.inputs, shapes.outputs, options);
      const std::vector<std::string> candidates = plan.candidates();
      ASSERT_GT(candidates.size(), 5u) << plan.to_string();
      EXPECT_EQ(candidates.front(), plan.config());
      EXPECT_EQ(std::set<std::string>(candidates.begin(), candidates.end()).size(),
                candidates.size());
      options.backend = plan.backend();
      for (const std::string& config : candidates) {
        options.config = config;
        EXPECT_EQ(make_plan(shapes.inputs, shapes.outputs, options).config(), config);
      }
    }
  }
}

// A grid that no GPU can launch is refused when the plan is made, not between two launches.
TEST(GpuPlans, TooManyBlocksAreRefused) {
  for (const std::string architecture : {"sm_80", "sm_90a"}) {
    Options options;
    options.architecture = architecture;
    const Shapes most(std::int64_t{1} << 28, 1, 2, 8, 16, 1, DType::kBF16);
    EXPECT_NO_THROW(make_plan(most.inputs, most.outputs, options));
    const Shapes more(std::int64_t{1} << 31, 1, 2, 8, 16, 1, DType::kBF16);
    try {
      make_plan(more.inputs, more.outputs, options);
      FAIL() << architecture;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(error.what(), testing::HasSubstr("at most 2^31 - 1 blocks"));
    }
  }
}

// Its tensors are on no GPU of that kind.
TEST(GpuPlans, ForANamedArchitectureDoNotRun) {
  Case c(testkit::sized(20, 2, 1, 8, 16));
  c.options.architecture = "sm_80";
  const Plan plan = make_plan(c.inputs, c.outputs, c.options);
  for (const std::function<void()>& use :
       {std::function<void()>([&] { prepare(plan); }),
        std::function<void()>([&] { forward(c.inputs, c.outputs, c.options); })}) {
    try {
      use();
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "[forward] architecture: expected none for a plan that runs, got sm_80");
    }
  }
}

TEST(Backends, TheForcedOneRuns) {
  const Shapes shapes(1, 64, 2, 8, 16, 1, DType::kBF16);  // what all instruction sets take
  for (const BackendInfo& info : backends()) {
    if (!info.available) continue;
    Options options;
    options.backend = info.name;
    const Inputs inputs = testkit::as_if_on(testkit::device_of_backend(info.name), shapes.inputs);
    EXPECT_EQ(make_plan(inputs, shapes.outputs, options).backend(), info.name);
  }
  EXPECT_STREQ(make_plan(shapes.inputs, shapes.outputs).backend(), "cpu");
  for (const std::string& isa : cpu_instruction_sets()) {
    Options options;
    options.config = "isa=" + isa;
    const Plan plan = make_plan(shapes.inputs, shapes.outputs, options);
    EXPECT_TRUE(plan.config().ends_with("isa=" + isa)) << plan.config();
  }
}

// Each instruction set has kernels of its own, and these know what they were compiled for.
TEST(Backends, InstructionSetsDiffer) {
  for (Isa isa : cpu_isas()) {
    EXPECT_EQ(cpu_kernels(isa).isa, isa) << name_of(isa);
    for (Isa other : cpu_isas()) {
      if (other == isa) continue;
      EXPECT_NE(cpu_kernels(isa).run, cpu_kernels(other).run) << name_of(isa);
    }
  }
}

// run() leaves the bits of the forced set's own kernels, in the outputs and in a thread's scratch,
// and these differ from set to set: a run() that chose for itself would be wrong for all sets but
// one. Outputs alone may agree, whatever the vectors' width; scratch also shows the height of the
// tiles.
TEST(Backends, RunObeysTheForcedOne) {
  CaseSpec spec = testkit::sized(300, 4, 2, 40, 24);
  spec.dtype = DType::kBF16;  // what all instruction sets take
  spec.final_states = DType::kF32;
  const auto bits_after = [&](Isa isa, const auto& call) {
    Case c(spec);
    c.options.config = std::string("walk,isa=") + name_of(isa);
    c.options.threads = 1;  // who takes which block, and so which scratch, is chance
    const Plan plan = make_plan(c.inputs, c.outputs, c.options);
    const testkit::Block workspace(plan.workspace_bytes());
    call(plan, c, workspace.data());
    const CpuLayout layout(plan.data().problem, plan.data().config, plan.threads());
    // From B on: what lies before it holds addresses.
    std::string bits(reinterpret_cast<const char*>(workspace.data() + layout.workers + layout.B),
                     layout.worker_bytes - layout.B);
    for (const TensorView& view : testkit::views_of(c.outputs)) {
      testkit::for_each_element(view, [&](auto, const std::byte* address) {
        bits.append(reinterpret_cast<const char*>(address), size_of(view.dtype));
      });
    }
    return bits;
  };
  std::map<std::string, Isa> seen;
  for (Isa isa : cpu_isas()) {
    const std::string ran = bits_after(isa, [](const Plan& plan, Case& c, std::byte* workspace) {
      run(plan, c.inputs, c.outputs, workspace);
    });
    const std::string own = bits_after(isa, [isa](const Plan& plan, Case& c, std::byte* workspace) {
      const PlanData& data = plan.data();
      cpu_kernels(isa).run(data.problem, data.config, buffers_of(c.inputs, c.outputs), data.threads,
                           workspace);
    });
    EXPECT_TRUE(ran == own) << name_of(isa);
    if (isa == Isa::kBaseline) continue;  // on x86 it does the very operations of sse4
    const auto [other, fresh] = seen.emplace(ran, isa);
    EXPECT_TRUE(fresh) << name_of(isa) << " and " << name_of(other->second) << " left the same";
  }
}

TEST(Plan, ConfigPassesBack) {
  const Shapes shapes(2, 300, 4, 64, 128, 1, DType::kBF16);
  for (const char* wanted : {"", "walk,q=32", "staged,q=128", "recurrence"}) {
    Options options;
    options.config = wanted;
    const Plan plan = make_plan(shapes.inputs, shapes.outputs, options);
    options.config = plan.config();
    EXPECT_EQ(make_plan(shapes.inputs, shapes.outputs, options).config(), plan.config());
    EXPECT_NE(plan.to_string().find(plan.config()), std::string::npos) << plan.to_string();
  }
}

TEST(Plan, ChunkSizeIsWhatTheConfigSays) {
  const Shapes shapes(1, 1000, 4, 64, 128, 1, DType::kF32);
  for (int q : {16, 64, 128, 256}) {
    Options options;
    options.chunk_size = q;
    const std::string config = make_plan(shapes.inputs, shapes.outputs, options).config();
    EXPECT_NE(config.find(",q=" + std::to_string(q)), std::string::npos) << config;
  }
}

TEST(Plan, WorkspaceDoesNotGrowWithLength) {
  for (const char* route : {"walk", "recurrence"}) {
    Options options;
    options.config = route;
    const auto bytes = [&](std::int64_t l) {
      const Shapes shapes(1, l, 24, 64, 128, 1, DType::kBF16);
      return make_plan(shapes.inputs, shapes.outputs, options).workspace_bytes();
    };
    EXPECT_EQ(bytes(2048), bytes(1 << 20)) << route;
  }
}

TEST(Plan, EveryModelHasOne) {
  for (const testkit::Model& model : testkit::models()) {
    for (std::int64_t l : {1, 512, 131072}) {
      const Shapes shapes(1, l, model.h, model.p, model.n, model.g, DType::kBF16);
      EXPECT_NO_THROW(make_plan(shapes.inputs, shapes.outputs)) << model.name;
    }
  }
}

// Runs the plan of one case on the tensors of another.
std::string refusal(const CaseSpec& planned, const std::function<void(Case&)>& change) {
  Case c(planned);
  const Plan plan = make_plan(c.inputs, c.outputs, c.options);
  prepare(plan);
  const testkit::Block workspace(plan.workspace_bytes());
  change(c);
  try {
    run(plan, c.inputs, c.outputs, workspace.data());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "";
}

TEST(Plan, RunsOnOtherMemoryAndStridesOfTheSameShape) {
  CaseSpec spec;
  EXPECT_EQ(refusal(spec,
                    [](Case& c) {
                      CaseSpec other = c.spec;
                      other.layout = testkit::Layout::kStrided;
                      c = Case(other);
                    }),
            "");
}

TEST(Plan, RefusesAWorkspaceThatIsNone) {
  Case c((CaseSpec()));
  const Plan plan = make_plan(c.inputs, c.outputs, c.options);
  const testkit::Block workspace(plan.workspace_bytes() + kAlignment);
  const std::string rule = "[forward] workspace: expected " +
                           std::to_string(plan.workspace_bytes()) +
                           " bytes at an address that is a multiple of 64, got ";
  for (std::byte* address : {static_cast<std::byte*>(nullptr), workspace.data() + 32}) {
    try {
      run(plan, c.inputs, c.outputs, address);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_TRUE(std::string(error.what()).starts_with(rule)) << error.what();
      EXPECT_EQ(std::string(error.what()).ends_with("a null pointer"), address == nullptr);
    }
  }
}

// Planned anywhere; run nowhere else than where its instructions are.
TEST(Plan, ForAnyInstructionSet) {
  const auto here = cpu_instruction_sets();
  for (const std::string& isa : all_cpu_instruction_sets()) {
    CaseSpec spec;
    spec.dtype = DType::kBF16;
    Case c(spec);
    c.options.config = "isa=" + isa;
    const Plan plan = make_plan(c.inputs, c.outputs, c.options);
    EXPECT_TRUE(plan.config().ends_with(c.options.config)) << plan.config();
    const testkit::Block workspace(plan.workspace_bytes());
    const auto refusal_of = [](const auto& call) -> std::string {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
        return error.what();
      }
      return "";
    };
    const bool elsewhere = std::find(here.begin(), here.end(), isa) == here.end();
    for (const std::string& sentence :
         {refusal_of([&] { prepare(plan); }),
          refusal_of([&] { run(plan, c.inputs, c.outputs, workspace.data()); }),
          refusal_of([&] { forward(c.inputs, c.outputs, c.options); })}) {
      EXPECT_EQ(sentence.starts_with("[forward] config: expected isa="), elsewhere) << sentence;
      EXPECT_EQ(sentence.ends_with(" on this machine, got isa=" + isa), elsewhere) << sentence;
      EXPECT_EQ(sentence.empty(), !elsewhere) << sentence;
    }
  }
}

TEST(Plan, RefusesTensorsThatDoNotFit) {
  CaseSpec spec;
  spec.l = 6;
  spec.final_states = DType::kF32;
  const auto expect = [&](const std::function<void(Case&)>& change, const std::string& sentence) {
    EXPECT_EQ(refusal(spec, change), "[forward] " + sentence);
  };
  expect([](Case& c) { c.inputs.x.shape[1] = 5; },
         "x: expected shape (b, l, h, p) = (1, 6, 4, 16), got (1, 5, 4, 16)");
  expect([](Case& c) { c.inputs.B.dtype = DType::kBF16; }, "B: expected dtype f32, got bf16");
  expect([](Case& c) { c.inputs.D = {}; }, "D: expected shape (h) = (4), got none");
  expect([](Case& c) { c.outputs.final_states = {}; },
         "final_states: expected shape (b, h, p, n) = (1, 4, 16, 16), got none");
  expect([](Case& c) { c.inputs.z.rank = -1; }, "z: expected a rank of at least 0, got -1");
  expect([](Case& c) { c.inputs.z = c.inputs.x; },
         "z: expected none, as in the plan, got shape (1, 6, 4, 16)");
  expect([](Case& c) { c.outputs.y.data = nullptr; },
         "y: expected memory for 384 elements, got a null pointer");
}

}  // namespace
}  // namespace chunkscan
