// Every way that this machine can run the operation. A conformance test is written once and runs
// for each of them.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "testkit/device_call.h"
#include "testkit/oracle.h"

namespace chunkscan {

struct Runner {
  // route "" = the one that the library chooses, isa "" = the backend has none
  std::string backend, route, isa;

  std::string name() const;
  bool on_gpu() const { return device() == testkit::kGpu; }
  Device device() const { return testkit::device_of_backend(backend); }
  // `options` with this backend and config; q = 0 leaves the chunk length to the library.
  Options with(Options options, int q = 0) const;
};

// Those of this executable: cpu_runners.cpp or gpu_runners.cpp.
std::vector<Runner> runners();

// How gtest prints and names a parameter.
void PrintTo(const Runner& runner, std::ostream* out);
std::string runner_name(const testing::TestParamInfo<Runner>& info);

// Cases live in host memory. A runner on a GPU works on copies there, and the outputs come back.
//
// Without a GPU its tests are skipped. "cuda/sm90" may refuse a case (ErrorKind::kUnsupported): the
// test goes on without it, and is skipped where none is left. No other backend refuses any.
class Conformance : public testing::TestWithParam<Runner> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool on_gpu() const { return GetParam().on_gpu(); }
  Options with(const Options& options, int q = 0) const { return GetParam().with(options, q); }

  // The case as far as this runner takes it: where it multiplies in bf16, x, B and C are bf16. For
  // "cuda/sm90", which moves 16 bytes at a time, p and n become multiples of 8 where nothing less
  // helps, and then the layout contiguous.
  testkit::Case make(testkit::CaseSpec spec) const;

  void call(const Inputs& inputs, const Outputs& outputs, const Options& options, int q = 0) const;
  void run(testkit::Case& c, int q = 0) const { call(c.inputs, c.outputs, c.options, q); }

  // Every output is right, and no byte that belongs to none has changed. `what` goes into the
  // failure's text.
  void expect_right(testkit::Case& c, int q = 0, const std::string& what = "");
  void expect_right(const testkit::CaseSpec& spec, int q = 0, const std::string& what = "");

  // Whether this runner takes the case, for tests that go on without it.
  bool takes(const testkit::Case& c, int q = 0);

  // The results of one case in two layouts: the same bits on the CPU. A GPU may take another way
  // where tensors are aligned less, and be off by rounding.
  void expect_same_numbers(const testkit::Case& a, const testkit::Case& b) const;

 private:
  // "" = the runner takes the case, else its sentence.
  std::string refusal(const testkit::Case& c, int q = 0) const;

  int taken_ = 0;
  std::string refused_;
};

// The inputs of tokens [begin, end), without packing and states.
Inputs tokens(const Inputs& inputs, std::int64_t begin, std::int64_t end);

// Bit for bit.
void expect_same_outputs(const Outputs& a, const Outputs& b);

// For results of two runs on the same numbers that should differ by rounding alone: `got` against
// `want`, within what both together may be off.
void expect_close(const Inputs& inputs, testkit::Output kind, const TensorView& got,
                  const TensorView& want);
void expect_close(const testkit::Case& c, testkit::Output kind, const TensorView& got,
                  const TensorView& want);
void expect_close(const Inputs& inputs, const Outputs& got, const Outputs& want);

// Part of a right result, held to the bound on its own: the rest cannot hide its error.
void expect_part_right(const testkit::Case& c, testkit::Output kind, const TensorView& got,
                       const TensorView& want);

}  // namespace chunkscan
