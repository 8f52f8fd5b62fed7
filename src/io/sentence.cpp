#include "io/sentence.h"

#include <nlohmann/json.hpp>
#include <system_error>

namespace chunkscan::io {

void refuse_file(const std::string& file, std::string_view what, std::string_view rule,
                 std::string_view value) {
  std::string sentence = file;
  sentence.append(": ").append(what).append(": expected ").append(rule).append(", got ");
  throw Error(ErrorKind::kInput, sentence.append(value));
}

void fail_on_file(const std::string& file, std::string_view action, int error_number) {
  std::string sentence = file;
  sentence.append(": cannot be ").append(action).append(": ");
  throw Error(ErrorKind::kRuntime, sentence + std::generic_category().message(error_number));
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  using nlohmann::json;
  const bool cut = text.size() > kLongest;
  const std::string shown = json(text.substr(0, kLongest))
                                .dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                                      json::error_handler_t::replace);
  return cut ? shown + "..." : shown;
}

}  // namespace chunkscan::io
