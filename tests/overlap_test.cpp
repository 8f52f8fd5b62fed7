#include "op/overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "testkit/tensors.h"

namespace chunkscan {
namespace {

using testkit::for_each_element;

std::vector<float> memory(4096);

TensorView at(std::int64_t offset, std::initializer_list<std::int64_t> shape,
              std::initializer_list<std::int64_t> strides) {
  return TensorView(memory.data() + offset, DType::kF32, shape, strides);
}

TEST(Overlap, ColumnSlicesOfOneBufferAreApart) {
  // Rows of 40: columns 0..15, 16..31 and 32..39.
  const auto a = at(0, {2, 10, 4, 4}, {400, 40, 4, 1});
  const auto b = at(16, {2, 10, 4, 4}, {400, 40, 4, 1});
  const auto c = at(32, {2, 10, 8}, {400, 40, 1});
  EXPECT_FALSE(may_overlap(a, b));
  EXPECT_FALSE(may_overlap(a, c));
  EXPECT_FALSE(may_overlap(c, b));
  EXPECT_TRUE(may_overlap(a, at(15, {2, 10, 4, 4}, {400, 40, 4, 1})));
}

TEST(Overlap, EvenAndOddElementsAreApart) {
  EXPECT_FALSE(may_overlap(at(0, {100}, {2}), at(1, {100}, {2})));
  EXPECT_TRUE(may_overlap(at(0, {100}, {2}), at(1, {100}, {3})));
  EXPECT_FALSE(may_overlap(at(0, {100}, {2}), at(199, {100}, {-2})));
}

TEST(Overlap, PartOfAnElementIsAnOverlap) {
  const TensorView halves(reinterpret_cast<std::byte*>(memory.data()) + 6, DType::kF16, {1});
  EXPECT_TRUE(may_overlap(at(1, {1}, {1}), halves));
  EXPECT_FALSE(may_overlap(at(2, {1}, {1}), halves));
}

TEST(Overlap, EmptyViewsOverlapNothing) {
  EXPECT_FALSE(may_overlap(at(0, {0, 4}, {4, 1}), at(0, {4, 4}, {4, 1})));
  EXPECT_FALSE(may_overlap_itself(at(0, {0, 4}, {0, 0})));
}

TEST(Overlap, ItselfThroughStrides) {
  EXPECT_FALSE(may_overlap_itself(at(0, {4, 5}, {5, 1})));
  EXPECT_FALSE(may_overlap_itself(at(0, {4, 5}, {1, 4})));
  EXPECT_FALSE(may_overlap_itself(at(100, {4, 5}, {-5, -1})));
  EXPECT_FALSE(may_overlap_itself(at(0, {1, 5}, {0, 1})));
  EXPECT_TRUE(may_overlap_itself(at(0, {4, 5}, {0, 1})));
  EXPECT_TRUE(may_overlap_itself(at(0, {4, 5}, {4, 1})));
}

// Against sets of addresses: never "apart" where elements are shared; for overlaps found it may
// have given up, but on sizes like these it does not.
TEST(Overlap, AgreesWithEnumeration) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto addresses = [](const TensorView& view) {
    std::set<const std::byte*> set;
    for_each_element(view, [&](auto, const std::byte* address) { set.insert(address); });
    return set;
  };
  int apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto view = [&] {
      return at(1000 + pick(0, 60), {pick(1, 4), pick(1, 4), pick(1, 4)},
                {pick(-30, 30), pick(-12, 12), pick(-3, 3)});
    };
    const TensorView a = view(), b = view();
    const auto in_a = addresses(a), in_b = addresses(b);
    bool shared = false;
    for (const std::byte* address : in_a) shared |= in_b.contains(address);
    EXPECT_EQ(may_overlap(a, b), shared);
    apart += !shared;
    if (in_a.size() < static_cast<std::size_t>(a.elements())) {
      EXPECT_TRUE(may_overlap_itself(a));
    }
  }
  EXPECT_GT(apart, 2000);
}

}  // namespace
}  // namespace chunkscan
