#include "op/overlap.h"

#include <algorithm>
#include <cstdlib>

namespace chunkscan {

namespace {

std::int64_t bytes_of(const TensorView& view) {
  return static_cast<std::int64_t>(size_of(view.dtype));
}

// The distance between an element of one view and an element of another is a sum of such terms:
// `stride` bytes times any whole number in [least, most].
struct Term {
  std::int64_t stride;
  std::int64_t least, most;
};

// Looks for a sum of terms that puts the distance into [first, last].
class Search {
 public:
  Search(const TensorView& a, const TensorView& b) {
    add(a, 1);
    add(b, -1);
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& u, const Term& v) { return u.stride > v.stride; });
    for (int i = count_; i-- > 0;) {
      least_[i] = least_[i + 1] + terms_[i].least * terms_[i].stride;
      most_[i] = most_[i + 1] + terms_[i].most * terms_[i].stride;
    }
    first_ = 1 - bytes_of(a);
    last_ = bytes_of(b) - 1;
  }

  // `distance` is that of the two first elements.
  bool finds(std::int64_t distance) { return visit(0, distance); }

 private:
  // Equal strides, of one view or of both, make one term: that is what keeps the search of slices
  // of one buffer short.
  void add(const TensorView& view, int sign) {
    for (int i = 0; i < view.rank; ++i) {
      if (view.shape[i] <= 1 || view.strides[i] == 0) continue;
      const std::int64_t step = view.strides[i] * bytes_of(view) * sign;
      const std::int64_t reach = view.shape[i] - 1;
      int at = 0;
      while (at < count_ && terms_[at].stride != std::abs(step)) ++at;
      if (at == count_) terms_[count_++] = {std::abs(step), 0, 0};
      (step > 0 ? terms_[at].most : terms_[at].least) += step > 0 ? reach : -reach;
    }
  }

  // Largest strides first: what the smaller ones can add leaves few choices for the larger.
  bool visit(int i, std::int64_t distance) {
    if (--visits_left_ < 0) return true;
    if (i == count_) return first_ <= distance && distance <= last_;
    const Term& term = terms_[i];
    const std::int64_t lowest = first_ - most_[i + 1] - distance;
    const std::int64_t highest = last_ - least_[i + 1] - distance;
    const std::int64_t begin = std::max(term.least, -floor_divide(-lowest, term.stride));
    const std::int64_t end = std::min(term.most, floor_divide(highest, term.stride));
    for (std::int64_t k = begin; k <= end; ++k) {
      if (visit(i + 1, distance + k * term.stride)) return true;
    }
    return false;
  }

  static std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
  }

  static constexpr std::size_t kMostTerms = std::size_t{2} * kMaxRank;

  std::array<Term, kMostTerms> terms_ = {};
  int count_ = 0;
  // What terms i and later can add.
  std::array<std::int64_t, kMostTerms + 1> least_ = {}, most_ = {};
  std::int64_t first_ = 0, last_ = 0;
  int visits_left_ = 4096;
};

}  // namespace

bool may_overlap(const TensorView& a, const TensorView& b) {
  if (a.elements() == 0 || b.elements() == 0) return false;
  return Search(a, b).finds(reinterpret_cast<std::intptr_t>(a.data) -
                            reinterpret_cast<std::intptr_t>(b.data));
}

bool may_overlap_itself(const TensorView& view) {
  if (view.elements() == 0) return false;
  std::array<std::array<std::int64_t, 2>, kMaxRank> steps;  // bytes, count
  int count = 0;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] > 1) {
      steps[count++] = {std::abs(view.strides[i]) * bytes_of(view), view.shape[i] - 1};
    }
  }
  std::partial_sort(steps.begin(), steps.begin() + count, steps.begin() + count);
  // Sufficient, not necessary: each stride steps over all that the smaller ones reach.
  std::int64_t reach = bytes_of(view);
  for (int i = 0; i < count; ++i) {
    if (steps[i][0] < reach) return true;
    reach += steps[i][0] * steps[i][1];
  }
  return false;
}

}  // namespace chunkscan
