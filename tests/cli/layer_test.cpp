// Layers far from the usual one, as files and as sizes: decays that wipe the state out, lengths
// that no chunk divides, groups.
#include <gmock/gmock.h>

#include "chunkscan/chunkscan.h"
#include "cli/program.h"
#include "io/safetensors.h"
#include "testkit/generate.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::Index;

class LayerTest : public Program {
 protected:
  // Writes a call's inputs to a file, as a model's owner would.
  std::string write(const Case& c) const {
    std::map<std::string, io::Tensor> tensors;
    const auto add = [&](const char* name, const TensorView& view) {
      if (!view.present()) return;
      tensors[name] = {view.dtype, {view.shape.begin(), view.shape.begin() + view.rank}, view.data};
    };
    add("x", c.inputs.x);
    add("dt", c.inputs.dt);
    add("A", c.inputs.A);
    add("B", c.inputs.B);
    add("C", c.inputs.C);
    add("D", c.inputs.D);
    add("dt_bias", c.inputs.dt_bias);
    io::write_safetensors(path("layer"), tensors,
                          {{"dt_softplus", c.options.dt_softplus ? "true" : "false"}});
    return path("layer");
  }

  void expect_right(const std::string& arguments) const {
    const Ran ran = chunkscan("check " + arguments);
    EXPECT_EQ(ran.code, 0) << arguments << "\n" << ran.out << ran.err;
  }
};

// dt is the step itself.
CaseSpec plain(DType dtype, std::int64_t l) {
  CaseSpec spec = testkit::sized(l, 3, 1, 10, 12);
  spec.dtype = dtype;
  spec.dt_dtype = DType::kF32;
  spec.softplus = spec.dt_bias = false;
  return spec;
}

TEST_F(LayerTest, EveryStepAndRate) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Case c(plain(dtype, 150));
    for (double A : {-1.0, -16.0, -1e2, -1e4, -1e6}) {
      for (double dt : {0.0, 1e-4, 1.0, 20.0, 1e3}) {
        SCOPED_TRACE("A " + std::to_string(A) + " dt " + std::to_string(dt));
        testkit::fill(c.inputs.A, A);
        testkit::fill(c.inputs.dt, dt);
        expect_right("--input " + write(c));
      }
    }
  }
}

TEST_F(LayerTest, HugeAndNoStepsAlternate) {
  for (double A : {-1.0, -1e6}) {
    Case c(plain(DType::kF32, 300));
    testkit::fill(c.inputs.A, A);
    testkit::fill(c.inputs.dt, [](Index i) { return i[1] % 2 == 0 ? 1e3 : 0.0; });
    for (const char* q : {"16", "128", "256"}) {
      expect_right("--input " + write(c) + " --chunk-size " + q);
    }
  }
}

TEST_F(LayerTest, RaggedTails) {
  for (const char* l : {"1", "2", "3", "7", "63", "64", "65", "127", "129", "255", "257", "300",
                        "511", "513", "1000"}) {
    for (const char* q : {"16", "64", "128", "256"}) {
      expect_right(std::string("--shape 1,") + l + ",2,20,24,1 --chunk-size " + q);
    }
  }
}

// With one token of step 1, y is x (B . C): B holds its group's number, so each head tells which
// group it read.
TEST_F(LayerTest, HeadsReadTheirGroup) {
  for (std::int64_t g : {1, 2, 3, 6}) {
    CaseSpec spec = testkit::sized(1, 6, g, 4, 8);
    spec.softplus = spec.dt_bias = false;
    spec.D = testkit::DForm::kNone;
    Case c(spec);
    for (const TensorView& view : {c.inputs.x, c.inputs.dt, c.inputs.C}) testkit::fill(view, 1.0);
    testkit::fill(c.inputs.B, [](Index i) { return static_cast<double>(1 + i[2]); });
    const Ran ran = chunkscan("run --input " + write(c) + " --output " + path("out"));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const io::Safetensors out = io::read_safetensors(path("out"));
    for (std::int64_t h = 0; h < 6; ++h) {
      const auto group = static_cast<double>(1 + h / (6 / g));
      EXPECT_EQ(testkit::get(out.tensors.at("y").view(), {0, 0, h, 3}), 8.0 * group)
          << "head " << h << " of 6, " << g << " groups";
    }
  }
}

}  // namespace
}  // namespace chunkscan
