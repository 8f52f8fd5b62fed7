#include "cli/call_file.h"

#include <fmt/core.h>

#include "cli/text.h"
#include "io/sentence.h"
#include "testkit/outputs.h"

namespace chunkscan::cli {

namespace {

struct InputField {
  const char* name;
  TensorView Inputs::*view;
  bool required;
};
constexpr InputField kInputs[] = {
    {"x", &Inputs::x, true},
    {"dt", &Inputs::dt, true},
    {"A", &Inputs::A, true},
    {"B", &Inputs::B, true},
    {"C", &Inputs::C, true},
    {"D", &Inputs::D, false},
    {"z", &Inputs::z, false},
    {"dt_bias", &Inputs::dt_bias, false},
    {"initial_states", &Inputs::initial_states, false},
    {"seq_idx", &Inputs::seq_idx, false},
    {"cu_seqlens", &Inputs::cu_seqlens, false},
};

// The output that a tensor of that name in a file is the expected result of; null for none.
const char* expected_output(const std::string& name) {
  for (const testkit::OutputField& field : testkit::kOutputs) {
    if (name == field.name) return field.name;
  }
  return name == "final_state" ? "final_states" : nullptr;
}

// Moves the outputs that `call.file` holds to `call.expected`.
void take_expected(FileCall& call, const std::string& path) {
  for (const auto& [name, tensor] : call.file.tensors) {
    const char* output = expected_output(name);
    if (output == nullptr) continue;
    if (!call.expected.emplace(output, tensor).second) {
      io::refuse_file(path, "tensor " + io::in_quotes(name), "final_state or final_states", "both");
    }
  }
}

TensorView Inputs::*input_field(const std::string& name) {
  for (const InputField& field : kInputs) {
    if (name == field.name) return field.view;
  }
  return nullptr;
}

void set_dt_softplus(std::string_view what, const std::string& text, Options& options) {
  if (text != "true" && text != "false") refuse(what, "true | false", text);
  options.dt_softplus = text == "true";
}

void set_dt_limit(std::string_view what, const std::string& text, Options& options) {
  const std::vector<std::string> ends = split(text);
  if (ends.size() != 2) refuse(what, "two numbers MIN,MAX such as 0.0,inf", text);
  options.dt_min = real_number(what, ends[0]);
  options.dt_max = real_number(what, ends[1]);
}

struct OptionField {
  const char* key;
  void (*set)(std::string_view what, const std::string& text, Options& options);
};
// chunk_size is not among them: there it says how a model was run on some other machine, and it
// changes nothing but speed.
constexpr OptionField kOptions[] = {{"dt_softplus", set_dt_softplus}, {"dt_limit", set_dt_limit}};

}  // namespace

const char* const kFileHelp =
    "Tensors in the file, by name:\n"
    "  x (b,l,h,p)  dt (b,l,h)  A (h)  B, C (b,l,g,n)      required\n"
    "  D (h) or (h,p)  z (b,l,h,p)  dt_bias (h)            optional\n"
    "  initial_states (b or s,h,p,n)  seq_idx (b,l)  cu_seqlens (s+1)\n"
    "  y, final_states (or final_state), chunk_states, log_decay: expected results,\n"
    "  which `check` compares with and `run` ignores. Any other name is refused.\n"
    "Metadata: dt_softplus (true | false), dt_limit (MIN,MAX); flags win.";

void FileFlags::add(CLI::App& app) {
  app.add_option("--dt-softplus", dt_softplus, "true | false: apply softplus to dt + dt_bias")
      ->type_name("BOOL");
  app.add_option("--dt-limit", dt_limit, "Clamp dt after that, such as 0.0,inf")
      ->type_name("MIN,MAX");
}

FileCall read_call(const FileFlags& flags, const CallFlags& how) {
  FileCall call;
  call.file = io::read_safetensors(flags.input);
  for (const auto& [name, tensor] : call.file.tensors) {
    if (const auto field = input_field(name)) {
      call.inputs.*field = tensor.view();
    } else if (expected_output(name) == nullptr) {
      std::string names;
      for (const InputField& known : kInputs) names += std::string(known.name) + ", ";
      io::refuse_file(flags.input, "tensor " + io::in_quotes(name),
                      "a name out of " + names + "y, final_states, chunk_states, log_decay",
                      "this one");
    }
  }
  for (const InputField& field : kInputs) {
    if (field.required && !(call.inputs.*field.view).present()) {
      io::refuse_file(flags.input, fmt::format("tensor \"{}\"", field.name),
                      "x, dt, A, B and C in the file", "none of that name");
    }
  }
  take_expected(call, flags.input);
  for (const OptionField& option : kOptions) {
    const auto found = call.file.metadata.find(option.key);
    if (found == call.file.metadata.end()) continue;
    option.set(fmt::format("{}: metadata \"{}\"", flags.input, option.key), found->second,
               call.options);
  }
  if (!flags.dt_softplus.empty()) set_dt_softplus("--dt-softplus", flags.dt_softplus, call.options);
  if (!flags.dt_limit.empty()) set_dt_limit("--dt-limit", flags.dt_limit, call.options);
  how.apply(call.options);
  return call;
}

FileCall read_expected(const std::string& path) {
  FileCall call;
  call.file = io::read_safetensors(path);
  take_expected(call, path);
  if (call.expected.empty()) {
    io::refuse_file(path, "file", "y, final_states, chunk_states or log_decay", "none of them");
  }
  return call;
}

}  // namespace chunkscan::cli
