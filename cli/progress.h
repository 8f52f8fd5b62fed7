// Signs of life on stderr during long work. Nothing is ever written where stderr is no terminal,
// and nothing is left behind on one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace chunkscan::cli {

// A bar for work that knows how far it is. Drawn by the caller's own thread: a second one would
// disturb what is being timed.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` in [0, 1]; redraws at most ten times a second.
  void show(double done, const std::string& label);

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point next_;
};

// The seconds passed, for work that does not know; appears after one second.
class Stopwatch {
 public:
  explicit Stopwatch(std::string label);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  void tick();

  std::string label_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace chunkscan::cli
