#include "op/config.h"

#include <charconv>

#include "op/sentence.h"

namespace chunkscan {

namespace {

constexpr Route kRoutes[] = {Route::kWalk, Route::kStaged, Route::kRecurrence};
constexpr Isa kIsas[] = {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2,
                         Isa::kNeon,       Isa::kSse4,   Isa::kBaseline};
constexpr int kMaxChunk = 1 << 20;

[[noreturn]] void refuse(std::string_view word) {
  refuse_input("config",
               "comma-separated words out of walk | staged | recurrence, q=<tokens>, "
               "isa=<instruction set>, state=<tiles>, out=<tiles>",
               "\"" + std::string(word) + "\"");
}

// "64x2x3".
bool parse_tiles(std::string_view text, Tiles& tiles) {
  tiles = {};
  for (int& tile : tiles) {
    const char* end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data(), end, tile);
    if (status != std::errc() || tile < 1 || tile > kMaxChunk) return false;
    if (stop == end) return true;
    if (*stop != 'x') return false;
    text.remove_prefix(static_cast<std::size_t>(stop + 1 - text.data()));
  }
  return false;
}

std::string tiles_text(const Tiles& tiles) {
  std::string text;
  for (int tile : tiles) {
    if (tile == 0) break;
    if (!text.empty()) text += 'x';
    text += std::to_string(tile);
  }
  return text;
}

void apply_word(std::string_view word, Config& config) {
  for (Route route : kRoutes) {
    if (word == name_of(route)) {
      config.route = route;
      return;
    }
  }
  if (word.starts_with("q=")) {
    const char* end = word.data() + word.size();
    const auto [stop, status] = std::from_chars(word.data() + 2, end, config.q);
    if (status == std::errc() && stop == end && config.q >= 1 && config.q <= kMaxChunk) return;
    refuse(word);
  }
  if (word.starts_with("state=") && parse_tiles(word.substr(6), config.state)) return;
  if (word.starts_with("out=") && parse_tiles(word.substr(4), config.out)) return;
  if (word.starts_with("isa=")) {
    for (Isa isa : kIsas) {
      if (word.substr(4) == name_of(isa)) {
        config.isa = isa;
        return;
      }
    }
  }
  refuse(word);
}

}  // namespace

std::span<const Isa> all_isas() { return kIsas; }

const char* name_of(Route route) {
  switch (route) {
    case Route::kWalk: return "walk";
    case Route::kStaged: return "staged";
    case Route::kRecurrence: return "recurrence";
  }
  return "?";
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::kNone: return "none";
    case Isa::kBaseline: return "baseline";
    case Isa::kSse4: return "sse4";
    case Isa::kNeon: return "neon";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Bf16: return "avx512_bf16";
  }
  return "?";
}

std::string to_string(const Config& config) {
  std::string text = name_of(config.route);
  if (config.q > 0) text += ",q=" + std::to_string(config.q);
  if (config.isa != Isa::kNone) text += std::string(",isa=") + name_of(config.isa);
  if (config.state[0] > 0) text += ",state=" + tiles_text(config.state);
  if (config.out[0] > 0) text += ",out=" + tiles_text(config.out);
  return text;
}

Config parse_config(std::string_view text, const Config& defaults) {
  Config config = defaults;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    apply_word(text.substr(0, comma), config);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) refuse("");
  }
  return config;
}

}  // namespace chunkscan
