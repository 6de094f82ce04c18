// Threads and memory, the same for every instruction set. Nothing here is a template of the standard library compiled
// for one processor and linked for another: what a variant includes is either its own or plain.

#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

// Call body(context, first, count, thread) for about equal parts of [0, total), each on a thread of its own.
void run_parallel(int64_t total, int64_t threads, void (*body)(void *, int64_t, int64_t, int64_t), void *context);

namespace VARIANT {

template <class Body> void parallel(int64_t total, int64_t threads, Body body) {
  run_parallel(
      total, threads,
      [](void *context, int64_t first, int64_t count, int64_t thread) {
        (*static_cast<Body *>(context))(first, count, thread);
      },
      &body);
}

// Scratch memory that goes with its scope.
template <class Real> struct Memory {
  Real *first;
  explicit Memory(int64_t count) : first(static_cast<Real *>(std::malloc(sizeof(Real) * (count ? count : 1)))) {
    if (!first) throw std::bad_alloc();
  }
  ~Memory() { std::free(first); }
  Memory(const Memory &) = delete;
};

}  // namespace VARIANT
