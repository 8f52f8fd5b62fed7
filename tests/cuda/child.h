// A piece of a test in a process of its own: for what a process decides once, and for races.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

namespace chunkscan::cuda {

class Child {
 public:
  // Runs at once; what `work` returns, or the sentence of its exception, comes back.
  explicit Child(const std::function<std::string()>& work) {
    if (pipe(ends_) != 0) return;
    id_ = fork();
    if (id_ != 0) {
      close(ends_[1]);
      return;
    }
    std::string said;
    try {
      said = work();
    } catch (const std::exception& error) {
      said = error.what();
    }
    for (std::size_t at = 0; at < said.size();) {
      const ssize_t written = write(ends_[1], said.data() + at, said.size() - at);
      if (written <= 0) break;
      at += static_cast<std::size_t>(written);
    }
    _exit(0);
  }

  // Waits for it. "died" where it did not end by itself.
  std::string said() {
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    close(ends_[0]);
    int status = 0;
    waitpid(id_, &status, 0);
    return WIFEXITED(status) ? all : "died";
  }

 private:
  int ends_[2] = {-1, -1};
  pid_t id_ = -1;
};

inline std::string in_child(const std::function<std::string()>& work) { return Child(work).said(); }

}  // namespace chunkscan::cuda
