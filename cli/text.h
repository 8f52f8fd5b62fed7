// Numbers and tables for people, numbers out of flags, JSON for programs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chunkscan::cli {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were set

inline constexpr const char* kJsonHelp = "Print one JSON object instead of text";

// Three significant digits with a unit: "812 us", "1.20 MiB", "1.66 M".
std::string as_time(double microseconds);
std::string as_bytes(double bytes);
std::string as_count(double count);
std::string as_percent(double share);
std::string as_error(double error);

// What is wrong with a flag or a file's metadata: "<what>: expected <rule>, got "<value>"".
[[noreturn]] void refuse(std::string_view what, std::string_view rule, std::string_view value);

// "a,b" -> {"a", "b"}; "" -> {}.
std::vector<std::string> split(std::string_view text);

// Nothing but a number, or refused under the name `what`.
std::int64_t whole_number(std::string_view what, std::string_view text);
float real_number(std::string_view what, std::string_view text);

// Columns as wide as their widest cell. Cells of columns that start with '>' in `header` stand at
// the right.
class Table {
 public:
  explicit Table(std::initializer_list<const char*> header);
  void add(std::vector<std::string> cells);
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

void print_json(const Json& json);

}  // namespace chunkscan::cli
