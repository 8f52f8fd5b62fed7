// Every way that this machine can run the operation. A conformance test is written once and runs
// for each of them.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "testkit/oracle.h"

namespace chunkscan {

struct Runner {
  std::string backend, route, isa;  // isa "" = the backend has none

  std::string name() const;
  // `options` with this backend and config; q = 0 leaves the chunk length to the library.
  Options with(Options options, int q = 0) const;
};

// The CPU backend's routes on every instruction set, and the reference's staged route. (The
// reference's recurrence is what all are compared with.)
std::vector<Runner> runners();

// How gtest prints and names a parameter.
void PrintTo(const Runner& runner, std::ostream* out);
std::string runner_name(const testing::TestParamInfo<Runner>& info);

class Conformance : public testing::TestWithParam<Runner> {
 protected:
  Options with(const Options& options, int q = 0) const { return GetParam().with(options, q); }

  // The case as far as this runner takes it: where it multiplies in bf16, x, B and C are bf16.
  testkit::Case make(testkit::CaseSpec spec) const;

  void run(testkit::Case& c, int q = 0) const { forward(c.inputs, c.outputs, with(c.options, q)); }

  // Every output is right, and no byte that belongs to none has changed. `what` goes into the
  // failure's text.
  void expect_right(testkit::Case& c, int q = 0, const std::string& what = "") const;
  void expect_right(const testkit::CaseSpec& spec, int q = 0, const std::string& what = "") const;
};

// The inputs of tokens [begin, end), without packing and states.
Inputs tokens(const Inputs& inputs, std::int64_t begin, std::int64_t end);

// Bit for bit.
void expect_same_outputs(const Outputs& a, const Outputs& b);

// For results of two runs of a case that should differ by rounding alone: `got` against `want`,
// within what both together may be off.
void expect_close(const testkit::Case& c, testkit::Output kind, const TensorView& got,
                  const TensorView& want);

// Part of a right result, held to the bound on its own: the rest cannot hide its error.
void expect_part_right(const testkit::Case& c, testkit::Output kind, const TensorView& got,
                       const TensorView& want);

}  // namespace chunkscan
