// Sizes by name: the models there are, and the shapes that speed is measured at.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace chunkscan::testkit {

// The SSD layer of a published model: a row of models.tsv, which is built in.
struct Model {
  std::string_view name;
  std::int64_t h, p, n, g, chunk;
  std::int64_t d_inner, conv_dim, d_in_proj;  // widths of its projections, in elements
};

std::span<const Model> models();

// nullptr where there is none of that name.
const Model* find_model(std::string_view name);

struct NamedShape {
  std::string_view name;
  std::int64_t b, l, h, p, n, g;
};

struct Suite {
  std::string_view name;
  std::string_view about;
  std::span<const NamedShape> shapes;
};

// "cpu": where the CPU's speed goals are set. "mamba_ssm": where that library was timed on a GPU.
std::span<const Suite> suites();

// nullptr where there is none of that name.
const Suite* find_suite(std::string_view name);

}  // namespace chunkscan::testkit
