// Plans: made without data, printable, and strict about what they run.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cpu/kernels.h"
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

TEST(Backends, CpuComesFirstAndIsAvailable) {
  const auto infos = backends();
  ASSERT_GE(infos.size(), 2u);
  EXPECT_EQ(infos[0].name, "cpu");
  EXPECT_TRUE(infos[0].available) << infos[0].reason;
  EXPECT_EQ(infos.back().name, "reference");
  EXPECT_FALSE(cpu_instruction_sets().empty());
}

TEST(Backends, TheForcedOneRuns) {
  const Shapes shapes(1, 64, 2, 8, 16, 1, DType::kBF16);  // what all instruction sets take
  for (const BackendInfo& info : backends()) {
    if (!info.available) continue;
    Options options;
    options.backend = info.name;
    EXPECT_EQ(make_plan(shapes.inputs, shapes.outputs, options).backend(), info.name);
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
  expect([](Case& c) { c.inputs.z = c.inputs.x; },
         "z: expected none, as in the plan, got shape (1, 6, 4, 16)");
  expect([](Case& c) { c.outputs.y.data = nullptr; },
         "y: expected memory for 384 elements, got a null pointer");
}

}  // namespace
}  // namespace chunkscan
