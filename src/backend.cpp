#include "backend.h"

#include <array>

#include "cpu/cpu_backend.h"
#include "cuda/cuda_backend.h"
#include "op/sentence.h"
#include "reference/reference_backend.h"

namespace chunkscan {

std::span<const Backend> all_backends() {
  static const std::array<Backend, 4> rows = {sm90_backend(), portable_backend(), cpu_backend(),
                                              reference_backend()};
  return rows;
}

const Backend& backend_named(std::string_view name) {
  std::string names;
  for (const Backend& backend : all_backends()) {
    if (name == backend.name) return backend;
    if (!names.empty()) names += " | ";
    names += backend.name;
  }
  refuse_input("backend", "cuda | " + names, std::string("\"").append(name).append("\""));
}

}  // namespace chunkscan
