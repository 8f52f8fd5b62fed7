// The one form of every refusal: "[forward] <tensor>: expected <rule>, got <value>".
#pragma once

#include <string>
#include <string_view>

#include "chunkscan/error.h"

namespace chunkscan {

[[noreturn]] inline void refuse_input(std::string_view what, std::string_view rule,
                                      std::string_view value, ErrorKind kind = ErrorKind::kInput) {
  std::string sentence = "[forward] ";
  sentence.append(what).append(": expected ").append(rule).append(", got ").append(value);
  throw Error(kind, sentence);
}

}  // namespace chunkscan
