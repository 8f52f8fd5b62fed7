#include "cli/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chunkscan/error.h"

namespace chunkscan::cli {

namespace {

struct Unit {
  double size;
  const char* name;
};

std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

// In the largest unit that leaves at least 1; `units` from large to small.
std::string in_units(double value, std::initializer_list<Unit> units) {
  const Unit* unit = units.begin();
  while (unit + 1 != units.end() && value < unit->size) ++unit;
  return three_digits(value / unit->size) + unit->name;
}

template <typename Number>
bool parse_all(std::string_view text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && stop == end;
}

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::string as_time(double microseconds) {
  return in_units(microseconds, {{1e6, " s"}, {1e3, " ms"}, {1.0, " us"}});
}

std::string as_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  return in_units(bytes, {{1024.0 * 1024 * 1024, " GiB"}, {1024.0 * 1024, " MiB"}, {1024, " KiB"}});
}

std::string as_count(double count) {
  return in_units(count, {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1.0, ""}});
}

std::string as_percent(double share) { return fmt::format("{:.1f} %", share * 100.0); }

std::string as_error(double error) { return fmt::format("{:.2e}", error); }

void refuse(std::string_view what, std::string_view rule, std::string_view value) {
  throw Error(ErrorKind::kInput, fmt::format("{}: expected {}, got \"{}\"", what, rule, value));
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(without_spaces(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::int64_t whole_number(std::string_view what, std::string_view text) {
  std::int64_t value = 0;
  if (!parse_all(text, value)) refuse(what, "a whole number", text);
  return value;
}

float real_number(std::string_view what, std::string_view text) {
  float value = 0.0f;
  if (!parse_all(text, value) || std::isnan(value)) refuse(what, "a number", text);
  return value;
}

Table::Table(std::initializer_list<const char*> header) : rows_(1) {
  for (std::string_view title : header) {
    right_.push_back(title.starts_with('>'));
    rows_[0].emplace_back(title.substr(right_.back() ? 1 : 0));
  }
}

void Table::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::to_string() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += right_[i] ? fmt::format("{:>{}}", row[i], widths[i])
                        : fmt::format("{:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void print_json(const Json& json) {
  // Text from a file may be no UTF-8; it must not keep the rest from being printed.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace chunkscan::cli
