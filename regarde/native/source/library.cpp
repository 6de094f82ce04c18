// What is no kernel: threads, memory, and what this processor can do.
#include <system_error>
#include <thread>
#include <vector>

#include "arguments.h"
#if defined(__GLIBC__)
#include <climits>
#include <malloc.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

void run_parallel(int64_t total, int64_t threads, void (*body)(void *, int64_t, int64_t, int64_t), void *context) {
  if (threads > total) threads = total;
  if (threads < 2) return body(context, 0, total, 0);
#if defined(_OPENMP)
  // torch's own threads: new ones would share a core with them while they wait for their next work
#pragma omp parallel for num_threads(static_cast<int>(threads)) schedule(static, 1)
  for (int64_t thread = 0; thread < threads; thread++) {
    const int64_t share = total / threads, more = total % threads;
    body(context, thread * share + (thread < more ? thread : more), share + (thread < more), thread);
  }
  return;
#endif
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(threads));
  int64_t first = 0;
  for (int64_t thread = 0; thread < threads; thread++) {
    const int64_t count = total / threads + (thread < total % threads);
    if (thread + 1 == threads) {
      body(context, first, count, thread);  // the last part is the caller's own
    } else {
      try {
        others.emplace_back(body, context, first, count, thread);
      } catch (const std::system_error &) {
        body(context, first, count, thread);  // no thread to be had: do it here
      }
    }
    first += count;
  }
  for (std::thread &other : others) other.join();
}

// 1 if the kernels for AVX2 can run here.
EXPORT int has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 0;
#endif
}

// The sizes of the arguments, for the Python side to compare with its own.
EXPORT int64_t size_of(int64_t which) {
  const int64_t sizes[] = {sizeof(Recurrent), sizeof(Additive), sizeof(Before),
                           sizeof(After),     sizeof(Heads),    sizeof(CrossEntropy), sizeof(Dropout)};
  return which >= 0 && which < 7 ? sizes[which] : -1;
}

// Keep freed memory for the next step of training instead of giving it back and having it zeroed again, page by page.
EXPORT void keep_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);  // large blocks too come from the heap
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}
