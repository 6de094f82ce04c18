// Threads that share the large products of one worker: when there are fewer sentences than threads, the others help.
//
// Work is cut into a few pieces that whoever is free takes. A helper that the system does not run takes none, and nobody
// waits for it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace engine {

class Crew {
  using Task = std::function<void(int64_t, int64_t)>;
  std::vector<std::thread> helpers;
  const Task *task = nullptr;
  int64_t pieces = 1;
  std::atomic<uint64_t> next{0};  // round << 32 | the piece that nobody has taken yet
  std::atomic<int64_t> done{0};
  std::atomic<bool> over{false};
  std::mutex mutex;
  std::condition_variable woken;
  static constexpr int PATIENCE = 20000;  // looks before a helper goes to sleep: longer than the small parts of a step

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void take() {
    uint64_t seen = next.load(std::memory_order_acquire);
    while (static_cast<int64_t>(seen & 0xffffffff) < pieces) {
      // a piece that was taken keeps its round open, so the task is this round's
      if (!next.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
      (*task)(static_cast<int64_t>(seen & 0xffffffff), pieces);
      done.fetch_add(1, std::memory_order_release);
      seen = next.load(std::memory_order_acquire);
    }
  }

  void help() {
    uint64_t round = 0;
    auto called = [&] { return next.load(std::memory_order_acquire) >> 32 != round; };
    while (true) {
      for (int look = 0; look < PATIENCE && !called(); look++) pause();
      if (!called()) {
        std::unique_lock<std::mutex> hold(mutex);
        woken.wait(hold, called);
      }
      if (over.load(std::memory_order_acquire)) return;
      round = next.load(std::memory_order_acquire) >> 32;
      take();
    }
  }

  void call() {
    {
      std::lock_guard<std::mutex> hold(mutex);  // so that nobody falls asleep in between
      next.store(((next.load(std::memory_order_relaxed) >> 32) + 1) << 32, std::memory_order_release);
    }
    woken.notify_all();
  }

 public:
  // So many in all, or as many as there are threads to be had.
  explicit Crew(int64_t count) {
    pieces = 2 * count;
    next.store(static_cast<uint64_t>(pieces), std::memory_order_release);  // nothing to take yet
    try {
      for (int64_t i = 1; i < count; i++) helpers.emplace_back([this] { help(); });
    } catch (const std::system_error &) {
    }
  }
  ~Crew() {
    over.store(true, std::memory_order_release);
    const Task nothing = [](int64_t, int64_t) {};
    task = &nothing, done.store(0, std::memory_order_relaxed);
    call();
    for (std::thread &helper : helpers) helper.join();
  }
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  // part(i, pieces) for each piece i, all done when it returns. No part may throw.
  void share(const Task &part) {
    task = &part, done.store(0, std::memory_order_relaxed);
    call();
    take();
    for (int64_t looks = 0; done.load(std::memory_order_acquire) < pieces; looks++) {
      if (looks < PATIENCE) pause();
      else std::this_thread::yield();
    }
  }
};

// The crew of this thread; null for a thread that works alone.
inline Crew *&crew() {
  static thread_local Crew *own = nullptr;
  return own;
}

}  // namespace engine
