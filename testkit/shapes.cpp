#include "testkit/shapes.h"

#include <algorithm>

namespace chunkscan::testkit {

namespace {

constexpr NamedShape kCpu[] = {
    {"130m 2k", 1, 2048, 24, 64, 128, 1},
    {"2.7b 4k", 1, 4096, 80, 64, 128, 1},
};

constexpr NamedShape kMambaSsm[] = {
    {"blog", 4, 16384, 8, 64, 128, 1},           {"blog p128", 4, 16384, 8, 128, 128, 1},
    {"blog q256", 4, 16384, 8, 64, 128, 1},      {"blog 2k", 4, 2048, 8, 64, 128, 1},
    {"blog 64k", 4, 65536, 8, 64, 128, 1},       {"blog n64", 4, 16384, 8, 64, 64, 1},
    {"blog n256", 4, 16384, 8, 64, 256, 1},      {"mamba2-2.7b", 8, 4096, 80, 64, 128, 1},
    {"nemotron-h-8b", 1, 8192, 128, 64, 128, 8}, {"granite-4.0-h-small", 1, 8192, 128, 64, 128, 1},
    {"falcon-h1-34b", 1, 8192, 32, 128, 256, 2}, {"prefill 512", 1, 512, 80, 64, 128, 1},
    {"long 128k", 1, 131072, 64, 64, 128, 1},
};

constexpr Suite kSuites[] = {
    {"cpu", "where the CPU's speed goals are set", kCpu},
    {"mamba_ssm", "where mamba_ssm was timed on a GPU", kMambaSsm},
};

template <typename Named>
const Named* find(std::span<const Named> rows, std::string_view name) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [name](const Named& named) { return named.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

const Model* find_model(std::string_view name) { return find(models(), name); }

std::span<const Suite> suites() { return kSuites; }

const Suite* find_suite(std::string_view name) { return find(suites(), name); }

}  // namespace chunkscan::testkit
