#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

namespace chunkscan::cli {

namespace {

constexpr int kWidth = 30;
constexpr const char* kClearLine = "\r\033[K";

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

void draw(const std::string& line) {
  fmt::print(stderr, "{}{}", kClearLine, line);
  std::fflush(stderr);
}

}  // namespace

ProgressBar::ProgressBar() : terminal_(stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  if (terminal_) draw("");
}

void ProgressBar::show(double done, const std::string& label) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * kWidth);
  draw(fmt::format("[{:<{}}] {:3.0f} %  {}", std::string(static_cast<std::size_t>(filled), '#'),
                   kWidth, done * 100.0, label));
}

Stopwatch::Stopwatch(std::string label) : label_(std::move(label)) {
  if (stderr_is_terminal()) thread_ = std::thread(&Stopwatch::tick, this);
}

Stopwatch::~Stopwatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
  draw("");
}

void Stopwatch::tick() {
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !stop_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; });
       ++seconds) {
    draw(fmt::format("{} ... {} s", label_, seconds));
  }
}

}  // namespace chunkscan::cli
