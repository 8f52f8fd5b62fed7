#include "conformance/runners.h"

#include <algorithm>

namespace chunkscan {

using testkit::Case;
using testkit::CaseSpec;
using testkit::Data;
using testkit::Output;
using testkit::OwnedTensor;

namespace {

// Ends the test as a skipped one, from wherever it is.
[[noreturn]] void skip(const std::string& why) {
  [&why] { GTEST_SKIP() << why; }();
  using testing::TestPartResult;
  throw testing::AssertionException(
      TestPartResult(TestPartResult::kSkip, __FILE__, __LINE__, why.c_str()));
}

// "" = the backend is here, else why not.
std::string missing(const std::string& name) {
  for (const BackendInfo& backend : backends()) {
    if (backend.name == name) return backend.reason;
  }
  const std::string why = testkit::gpu_unavailable();
  return why.empty() ? "expected a backend " + name + ", got a build without it" : why;
}

bool may_refuse(const Runner& runner) { return runner.backend == "cuda/sm90"; }

std::int64_t next_multiple_of_8(std::int64_t size) { return (size + 7) / 8 * 8; }

// x, B and C in bf16; the rest keeps its dtype.
CaseSpec in_bf16(CaseSpec spec) {
  const DType wanted = spec.dtype;
  spec.dt_dtype = spec.dt_dtype.value_or(wanted);
  spec.z_dtype = spec.z_dtype.value_or(wanted);
  if (spec.D_dtype == wanted) spec.D_dtype = DType::kBF16;
  if (spec.dt_bias_dtype == wanted) spec.dt_bias_dtype = DType::kBF16;
  spec.dtype = DType::kBF16;
  spec.B_dtype = spec.C_dtype = std::nullopt;
  return spec;
}

// z too, and rows of whole 16 bytes.
CaseSpec aligned(CaseSpec spec) {
  spec = in_bf16(spec);
  spec.z_dtype = DType::kBF16;
  spec.p = next_multiple_of_8(spec.p);
  spec.n = next_multiple_of_8(spec.n);
  return spec;
}

CaseSpec contiguous(CaseSpec spec) {
  spec.layout = testkit::Layout::kContiguous;
  return spec;
}

}  // namespace

std::string Runner::name() const {
  std::string text = backend;
  std::replace(text.begin(), text.end(), '/', '_');
  for (const std::string& part : {route, isa}) text += part.empty() ? "" : "_" + part;
  return text;
}

Options Runner::with(Options options, int q) const {
  options.backend = backend;
  if (on_gpu()) {  // its kernels have sizes of their own, and take the nearest
    options.config = route;
    options.chunk_size = q;
    return options;
  }
  options.config = route;
  if (q > 0) options.config += ",q=" + std::to_string(q);
  if (!isa.empty()) options.config += ",isa=" + isa;
  return options;
}

void PrintTo(const Runner& runner, std::ostream* out) { *out << runner.name(); }

std::string runner_name(const testing::TestParamInfo<Runner>& info) { return info.param.name(); }

void Conformance::SetUp() {
  if (const std::string why = missing(GetParam().backend); !why.empty()) GTEST_SKIP() << why;
}

void Conformance::TearDown() {
  if (taken_ == 0 && !refused_.empty()) GTEST_SKIP() << refused_;
}

void Conformance::call(const Inputs& inputs, const Outputs& outputs, const Options& options,
                       int q) const {
  if (!on_gpu()) return forward(inputs, outputs, with(options, q));
  try {
    const testkit::DeviceCall copies(inputs, outputs, GetParam().device());
    forward(copies.inputs(), copies.outputs(), with(options, q), copies.stream().get());
    copies.download();
    EXPECT_TRUE(copies.untouched_elsewhere()) << "wrote to an input, or outside all tensors";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported || !may_refuse(GetParam())) throw;
    skip(error.what());
  }
}

void Conformance::expect_right(Case& c, int q, const std::string& what) {
  if (!takes(c, q)) return;
  c.poison_outputs();
  const auto before = c.digest_outside_outputs();
  const auto comparisons =
      check_case(c, c.options,
                 [this, q](const Inputs& inputs, const Outputs& outputs, const Options& options) {
                   call(inputs, outputs, options, q);
                 });
  EXPECT_TRUE(all_ok(comparisons))
      << what << " b " << c.spec.b << " l " << c.spec.l << " h " << c.spec.h << " p " << c.spec.p
      << " n " << c.spec.n << " g " << c.spec.g << " q " << q << "\n"
      << to_string(comparisons);
  EXPECT_EQ(c.digest_outside_outputs(), before) << what << ": wrote outside the outputs";
}

void Conformance::expect_right(const CaseSpec& spec, int q, const std::string& what) {
  Case c = make(spec);
  expect_right(c, q, what);
}

Case Conformance::make(CaseSpec spec) const {
  if (GetParam().isa == "avx512_bf16") return Case(in_bf16(spec));
  Case c(spec);
  if (!may_refuse(GetParam())) return c;
  for (const CaseSpec& next : {in_bf16(spec), aligned(spec), contiguous(aligned(spec))}) {
    if (refusal(c).empty()) break;
    c = Case(next);
  }
  return c;
}

bool Conformance::takes(const Case& c, int q) {
  std::string why = may_refuse(GetParam()) ? refusal(c, q) : "";
  if (why.empty()) {
    ++taken_;
    return true;
  }
  refused_ = std::move(why);
  return false;
}

std::string Conformance::refusal(const Case& c, int q) const {
  try {
    make_plan(testkit::as_if_on(GetParam().device(), c.inputs), c.outputs, with(c.options, q));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUnsupported) return error.what();
    throw;
  }
  return "";
}

void Conformance::expect_same_numbers(const Case& a, const Case& b) const {
  if (!on_gpu()) return expect_same_outputs(a.outputs, b.outputs);
  expect_close(a.inputs, b.outputs, a.outputs);
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

void expect_close(const Inputs& inputs, Output kind, const TensorView& got,
                  const TensorView& want) {
  OwnedTensor wide(DType::kF64, {want.shape.data(), static_cast<std::size_t>(want.rank)});
  testkit::copy(want, wide.view());
  const double allowed = testkit::allowed_error(kind, Data::kAny, testkit::least_precise(inputs),
                                                wide.view(), got.dtype);
  const auto comparison = testkit::compare("second run", got, wide.view(), 2 * allowed);
  EXPECT_TRUE(comparison.ok) << to_string(comparison);
}

void expect_close(const Case& c, Output kind, const TensorView& got, const TensorView& want) {
  expect_close(c.inputs, kind, got, want);
}

void expect_close(const Inputs& inputs, const Outputs& got, const Outputs& want) {
  for (const testkit::OutputField& field : testkit::kOutputs) {
    const TensorView& view = want.*field.view;
    if (view.present()) expect_close(inputs, field.kind, got.*field.view, view);
  }
}

void expect_part_right(const Case& c, Output kind, const TensorView& got, const TensorView& want) {
  const double allowed =
      testkit::allowed_error(kind, Data::kAny, testkit::least_precise(c.inputs), want, got.dtype);
  const auto comparison = testkit::compare("part", got, want, allowed);
  EXPECT_TRUE(comparison.ok) << to_string(comparison);
}

}  // namespace chunkscan
