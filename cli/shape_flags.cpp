#include "cli/shape_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cli/outputs.h"
#include "cli/text.h"
#include "testkit/device_call.h"
#include "testkit/shapes.h"

namespace chunkscan::cli {

namespace {

using testkit::CaseSpec;
using testkit::DForm;
using testkit::NamedShape;
using testkit::PackedBy;

struct Feature {
  const char* name;
  void (*apply)(CaseSpec& spec);
};

void pack(CaseSpec& spec, PackedBy how) {
  spec.packed_by = how;
  spec.lengths = packed_lengths(spec.l);
}

constexpr Feature kFeatures[] = {
    {"D", [](CaseSpec& spec) { spec.D = DForm::kHead; }},
    {"D_head_dim", [](CaseSpec& spec) { spec.D = DForm::kHeadDim; }},
    {"z", [](CaseSpec& spec) { spec.z = true; }},
    {"dt_bias", [](CaseSpec& spec) { spec.dt_bias = true; }},
    {"softplus", [](CaseSpec& spec) { spec.softplus = true; }},
    {"initial_states", [](CaseSpec& spec) { spec.initial_states = DType::kF32; }},
    {"final_states", [](CaseSpec& spec) { spec.final_states = DType::kF32; }},
    {"varlen", [](CaseSpec& spec) { pack(spec, PackedBy::kCuSeqlens); }},
    {"seq_idx", [](CaseSpec& spec) { pack(spec, PackedBy::kSeqIdx); }},
};

std::string feature_names() {
  std::string names;
  for (const Feature& feature : kFeatures) {
    names += (names.empty() ? "" : ", ") + std::string(feature.name);
  }
  return names;
}

// Two that say the same thing differently: the later one would win in silence.
void require_one_of(std::array<const char*, 2> pair, const std::vector<std::string>& names) {
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has(pair[0]) || !has(pair[1])) return;
  throw Error(ErrorKind::kInput,
              fmt::format("--features: expected {} or {}, got both", pair[0], pair[1]));
}

void apply_features(const std::string& text, CaseSpec& spec) {
  spec.D = DForm::kNone;
  spec.dt_bias = false;
  spec.softplus = false;
  if (text == "none") return;
  const std::vector<std::string> names = split(text);
  for (const std::string& name : names) {
    bool known = false;
    for (const Feature& feature : kFeatures) {
      if (name != feature.name) continue;
      feature.apply(spec);
      known = true;
    }
    if (!known) refuse("--features", "none, or names out of " + feature_names(), name);
  }
  require_one_of({"D", "D_head_dim"}, names);
  require_one_of({"varlen", "seq_idx"}, names);
}

struct NamedLayout {
  const char* name;
  testkit::Layout layout;
  const char* about;
};

constexpr NamedLayout kLayouts[] = {
    {"rows", testkit::Layout::kContiguous, "row-major"},
    {"projection", testkit::Layout::kFused, "columns of one row-major buffer"},
    {"tokens", testkit::Layout::kTokens, "x, y, z, B, C and dt contiguous along tokens"},
    {"tokens_x", testkit::Layout::kTokensX, "of these, x, y and z"},
    {"tokens_BC", testkit::Layout::kTokensBC, "of these, B and C"},
    {"strided", testkit::Layout::kStrided, "elements two apart"},
};

testkit::Layout layout_named(const std::string& name) {
  std::string names;
  for (const NamedLayout& known : kLayouts) {
    if (name == known.name) return known.layout;
    names += (names.empty() ? "" : " | ") + std::string(known.name);
  }
  refuse("--layout", names, name);
}

NamedShape parse_shape(const std::string& text) {
  constexpr const char* kRule = "six whole numbers b,l,h,p,n,g such as 1,2048,24,64,128,1";
  const std::vector<std::string> parts = split(text);
  if (parts.size() != 6) refuse("--shape", kRule, text);
  std::int64_t sizes[6];
  for (int i = 0; i < 6; ++i) sizes[i] = whole_number("--shape", parts[i]);
  const auto [b, l, h, p, n, g] = sizes;
  if (b < 0 || l < 0 || h < 1 || p < 1 || n < 1 || g < 1) refuse("--shape", "positive sizes", text);
  return {"-", b, l, h, p, n, g};
}

NamedShape model_shape(const ShapeFlags& flags) {
  if (const testkit::Model* model = testkit::find_model(flags.model)) {
    return {model->name, flags.batch, flags.seqlen, model->h, model->p, model->n, model->g};
  }
  std::string names;
  for (const testkit::Model& model : testkit::models()) {
    names += (names.empty() ? "" : " | ") + std::string(model.name);
  }
  refuse("--model", names, flags.model);
}

std::vector<NamedShape> suite_shapes(const std::string& name) {
  if (const testkit::Suite* suite = testkit::find_suite(name)) {
    return {suite->shapes.begin(), suite->shapes.end()};
  }
  std::string names;
  for (const testkit::Suite& suite : testkit::suites()) {
    names += (names.empty() ? "" : " | ") + std::string(suite.name);
  }
  refuse("--suite", names, name);
}

std::vector<NamedShape> shapes(const ShapeFlags& flags) {
  if (!flags.shape.empty()) return {parse_shape(flags.shape)};
  if (!flags.model.empty()) return {model_shape(flags)};
  if (!flags.suite.empty()) return suite_shapes(flags.suite);
  throw Error(ErrorKind::kInput, "sizes: expected --shape or --model, got neither");
}

// The inputs' views without memory.
Inputs input_shapes(const CaseSpec& spec) {
  const auto [b, l, h, p, n, g] = std::array{spec.b, spec.l, spec.h, spec.p, spec.n, spec.g};
  const auto sequences = static_cast<std::int64_t>(spec.lengths.size());
  const bool packed = spec.packed_by == PackedBy::kCuSeqlens;
  Inputs in;
  in.x = TensorView(nullptr, spec.dtype, {b, l, h, p});
  in.dt = TensorView(nullptr, spec.dtype, {b, l, h});
  in.A = TensorView(nullptr, DType::kF32, {h});
  in.B = TensorView(nullptr, spec.dtype, {b, l, g, n});
  in.C = in.B;
  if (spec.D == DForm::kHead) in.D = TensorView(nullptr, DType::kF32, {h});
  if (spec.D == DForm::kHeadDim) in.D = TensorView(nullptr, DType::kF32, {h, p});
  if (spec.z) in.z = in.x;
  if (spec.dt_bias) in.dt_bias = in.A;
  if (spec.initial_states) {
    in.initial_states =
        TensorView(nullptr, *spec.initial_states, {packed ? sequences : b, h, p, n});
  }
  if (packed) in.cu_seqlens = TensorView(nullptr, DType::kI32, {sequences + 1});
  if (spec.packed_by == PackedBy::kSeqIdx) in.seq_idx = TensorView(nullptr, DType::kI32, {b, l});
  return in;
}

}  // namespace

void ShapeFlags::add(CLI::App& app) {
  app.option_defaults()->group("Call on random numbers");
  CLI::Option* shape_option = app.add_option("--shape", shape, "Sizes, such as 1,2048,24,64,128,1")
                                  ->type_name("b,l,h,p,n,g");
  CLI::Option* model_option =
      app.add_option("--model", model, "Sizes of a model's SSD layer, such as mamba2-2.7b")
          ->type_name("NAME")
          ->excludes(shape_option);
  app.add_option("--seqlen", seqlen, "Tokens l of each sequence, with --model")
      ->type_name("L")
      ->needs(model_option)
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--batch", batch, "Batch b, with --model")
      ->type_name("B")
      ->needs(model_option)
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--dtype", dtypes, "Of x, dt, B, C and z: f32 | bf16 | f16")
      ->type_name("T")
      ->capture_default_str();
  app.add_option("--features", features, "none, or names out of\n" + feature_names())
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--seed", seed, "Of the random numbers")->type_name("S")->capture_default_str();
}

void ShapeFlags::add_suite(CLI::App& app) {
  std::string about = "Several sizes at once:";
  for (const testkit::Suite& known : testkit::suites()) {
    about += fmt::format(" {} ({});", known.name, known.about);
  }
  about.back() = '.';
  app.add_option("--suite", suite, about)
      ->type_name("NAME")
      ->excludes(app.get_option("--shape"))
      ->excludes(app.get_option("--model"));
  app.get_option("--dtype")->description(
      "Of x, dt, B, C and z: f32 | bf16 | f16, or several joined by commas");
}

void ShapeFlags::add_layout(CLI::App& app) {
  std::string about = "How the tensors lie in memory:";
  for (const NamedLayout& known : kLayouts) {
    about += fmt::format("\n{}: {}", known.name, known.about);
  }
  app.add_option("--layout", layout, about)->type_name("NAME")->capture_default_str();
}

std::vector<NamedCase> ShapeFlags::cases() const {
  std::vector<NamedCase> cases;
  const std::vector<std::string> names = split(dtypes);
  if (names.empty()) refuse("--dtype", "bf16 | f16 | f32", dtypes);
  for (const NamedShape& sizes : shapes(*this)) {
    for (const std::string& name : names) {
      CaseSpec spec;
      spec.b = sizes.b;
      spec.l = sizes.l;
      spec.h = sizes.h;
      spec.p = sizes.p;
      spec.n = sizes.n;
      spec.g = sizes.g;
      spec.dtype = dtype_named("--dtype", name);
      spec.seed = seed;
      spec.layout = layout_named(layout);
      apply_features(features, spec);
      cases.push_back({std::string(sizes.name), spec});
    }
  }
  return cases;
}

NamedCase ShapeFlags::one_case() const {
  const std::vector<NamedCase> all = cases();
  if (all.size() != 1) refuse("--dtype", "one of bf16 | f16 | f32", dtypes);
  return all.front();
}

std::vector<std::int64_t> packed_lengths(std::int64_t l) {
  return {l / 2, 0, l / 3, l / 12, l / 24};
}

Options options_of(const CaseSpec& spec, const CallFlags& how) {
  Options options;
  options.dt_softplus = spec.softplus;
  how.apply(options);
  return options;
}

Plan plan_of(const CaseSpec& spec, const Options& options, Device device) {
  const Inputs inputs = testkit::as_if_on(device, input_shapes(spec));
  Wanted wanted;
  wanted.final_states = spec.final_states.has_value();
  return make_plan(inputs, output_shapes(inputs, wanted), options);
}

std::string shape_text(const CaseSpec& spec) {
  return fmt::format("{},{},{},{},{},{}", spec.b, spec.l, spec.h, spec.p, spec.n, spec.g);
}

}  // namespace chunkscan::cli
