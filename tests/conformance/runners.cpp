#include "conformance/runners.h"

namespace chunkscan {

using testkit::Case;
using testkit::CaseSpec;
using testkit::Data;
using testkit::Output;
using testkit::OwnedTensor;

std::string Runner::name() const { return backend + "_" + route + (isa.empty() ? "" : "_" + isa); }

Options Runner::with(Options options, int q) const {
  options.backend = backend;
  options.config = route;
  if (q > 0) options.config += ",q=" + std::to_string(q);
  if (!isa.empty()) options.config += ",isa=" + isa;
  return options;
}

std::vector<Runner> runners() {
  std::vector<Runner> all = {{"reference", "staged", ""}};
  for (const BackendInfo& backend : backends()) {
    if (backend.name != "cpu" || !backend.available) continue;  // plan_test asserts that it is
    for (const std::string& isa : cpu_instruction_sets()) {
      for (const char* route : {"walk", "staged", "recurrence"}) all.push_back({"cpu", route, isa});
    }
  }
  return all;
}

void PrintTo(const Runner& runner, std::ostream* out) { *out << runner.name(); }

std::string runner_name(const testing::TestParamInfo<Runner>& info) { return info.param.name(); }

void Conformance::expect_right(Case& c, int q, const std::string& what) const {
  c.poison_outputs();
  const auto before = c.digest_outside_outputs();
  const auto comparisons = check_case(c, with(c.options, q));
  EXPECT_TRUE(all_ok(comparisons))
      << what << " b " << c.spec.b << " l " << c.spec.l << " h " << c.spec.h << " p " << c.spec.p
      << " n " << c.spec.n << " g " << c.spec.g << " q " << q << "\n"
      << to_string(comparisons);
  EXPECT_EQ(c.digest_outside_outputs(), before) << what << ": wrote outside the outputs";
}

void Conformance::expect_right(const CaseSpec& spec, int q, const std::string& what) const {
  Case c = make(spec);
  expect_right(c, q, what);
}

Case Conformance::make(CaseSpec spec) const {
  if (GetParam().isa == "avx512_bf16") {
    const DType wanted = spec.dtype;
    spec.dt_dtype = spec.dt_dtype.value_or(wanted);
    spec.z_dtype = spec.z_dtype.value_or(wanted);
    if (spec.D_dtype == wanted) spec.D_dtype = DType::kBF16;
    if (spec.dt_bias_dtype == wanted) spec.dt_bias_dtype = DType::kBF16;
    spec.dtype = DType::kBF16;
    spec.B_dtype = spec.C_dtype = std::nullopt;
  }
  return Case(spec);
}

Inputs tokens(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  Inputs part = inputs;
  part.cu_seqlens = part.seq_idx = part.initial_states = {};
  for (TensorView* view : {&part.x, &part.dt, &part.B, &part.C, &part.z}) {
    if (view->present()) *view = testkit::slice(*view, 1, begin, end);
  }
  return part;
}

void expect_same_outputs(const Outputs& a, const Outputs& b) {
  EXPECT_TRUE(testkit::same_bits(a.y, b.y));
  EXPECT_TRUE(testkit::same_bits(a.final_states, b.final_states));
  EXPECT_TRUE(testkit::same_bits(a.chunk_states, b.chunk_states));
  EXPECT_TRUE(testkit::same_bits(a.log_decay, b.log_decay));
}

void expect_close(const Case& c, Output kind, const TensorView& got, const TensorView& want) {
  OwnedTensor wide(DType::kF64, {want.shape.data(), static_cast<std::size_t>(want.rank)});
  testkit::copy(want, wide.view());
  const double allowed = testkit::allowed_error(kind, Data::kAny, testkit::least_precise(c.inputs),
                                                wide.view(), got.dtype);
  const auto comparison = testkit::compare("second run", got, wide.view(), 2 * allowed);
  EXPECT_TRUE(comparison.ok) << to_string(comparison);
}

void expect_part_right(const Case& c, Output kind, const TensorView& got, const TensorView& want) {
  const double allowed =
      testkit::allowed_error(kind, Data::kAny, testkit::least_precise(c.inputs), want, got.dtype);
  const auto comparison = testkit::compare("part", got, want, allowed);
  EXPECT_TRUE(comparison.ok) << to_string(comparison);
}

}  // namespace chunkscan
