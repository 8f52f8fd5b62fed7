// The one form of every refusal of a file: "<file>: <what>: expected <rule>, got <value>".
#pragma once

#include <string>
#include <string_view>

#include "chunkscan/error.h"

namespace chunkscan::io {

[[noreturn]] void refuse_file(const std::string& file, std::string_view what, std::string_view rule,
                              std::string_view value);

// The machine failed at `action`; `error_number` is errno's value.
[[noreturn]] void fail_on_file(const std::string& file, std::string_view action, int error_number);

// A stranger's text in quotes: ASCII with escapes, so that it cannot drive a terminal, and cut
// short, so that a sentence stays one.
std::string in_quotes(std::string_view text);

}  // namespace chunkscan::io
