// How a backend carries out a problem. Prints to a string that parses back: "walk,q=64,isa=avx512",
// "staged,q=128,state=64x2x3,out=8x64x3x1".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chunkscan {

enum class Route : std::uint8_t {
  kWalk,        // one pass: the state is carried through the chunks of a head
  kStaged,      // chunk_cumsum, fwd_pass_state, compute_out, one after the other
  kRecurrence,  // token by token
};

// CPU instruction sets, best last. kBaseline is what every machine of the architecture has.
enum class Isa : std::uint8_t { kNone, kBaseline, kSse4, kNeon, kAvx2, kAvx512, kAvx512Bf16 };

// Tile sizes and counts of a GPU kernel, in the order that its backend gives them; 0 = none more.
using Tiles = std::array<int, 6>;

struct Config {
  Route route = Route::kWalk;
  int q = 0;  // chunk length; 0 where the route has no chunks
  Isa isa = Isa::kNone;
  Tiles state = {};  // of fwd_pass_state
  Tiles out = {};    // of compute_out

  friend bool operator==(const Config&, const Config&) = default;
};

// Every instruction set but kNone, best first.
std::span<const Isa> all_isas();

const char* name_of(Route route);
const char* name_of(Isa isa);

std::string to_string(const Config& config);

// Starts from `defaults` and replaces what `text` names; throws Error on an unknown word.
Config parse_config(std::string_view text, const Config& defaults);

}  // namespace chunkscan
