// What is no kernel: threads, memory, and what this processor can do.
#include <atomic>
#include <cmath>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "aligner.h"
#include "arguments.h"
#include "engine/request.h"
#include "table.h"
#if defined(__linux__)
#include <dlfcn.h>
#endif
#if defined(__GLIBC__)
#include <climits>
#include <malloc.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Body = void (*)(void *, int64_t, int64_t, int64_t);

// The parts of [0, total), as equal as can be.
struct Parts {
  int64_t total, threads;
  Body body;
  void *context;
  void run(int64_t thread) const {
    const int64_t share = total / threads, more = total % threads;
    body(context, thread * share + (thread < more ? thread : more), share + (thread < more), thread);
  }
};

// The OpenMP library of GCC. It is not linked, so that this library needs nothing but C and C++.
struct Team {
  void (*start)(void (*)(void *), void *, unsigned, unsigned) = nullptr;
  int (*number)() = nullptr, (*size)() = nullptr;
};

// That of this process, if it is loaded, as it is with torch; null otherwise.
const Team *team() {
#if defined(__linux__)
  static std::atomic<bool> found{false};
  static std::mutex finding;
  static Team one;
  if (found.load(std::memory_order_acquire)) return &one;
  const std::lock_guard<std::mutex> lock(finding);
  if (void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    one.start = reinterpret_cast<decltype(one.start)>(dlsym(library, "GOMP_parallel"));
    one.number = reinterpret_cast<decltype(one.number)>(dlsym(library, "omp_get_thread_num"));
    one.size = reinterpret_cast<decltype(one.size)>(dlsym(library, "omp_get_num_threads"));
    found.store(one.start && one.number && one.size, std::memory_order_release);
  }
  return found.load(std::memory_order_relaxed) ? &one : nullptr;
#else
  return nullptr;
#endif
}

struct Shared {
  const Parts &parts;
  const Team &team;
};

}  // namespace

void run_parallel(int64_t total, int64_t threads, Body body, void *context) {
  if (threads > total) threads = total;
  if (threads < 2) return body(context, 0, total, 0);
  const Parts parts{total, threads, body, context};
  if (const Team *own = team()) {  // new threads would share a core with those of torch, which wait for their next work
    Shared shared{parts, *own};
    own->start(
        [](void *given) {
          const Shared &all = *static_cast<const Shared *>(given);
          for (int64_t i = all.team.number(); i < all.parts.threads; i += all.team.size()) all.parts.run(i);
        },
        &shared, static_cast<unsigned>(threads), 0);
    return;
  }
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(threads));
  for (int64_t thread = 1; thread < threads; thread++) {
    try {
      others.emplace_back(&Parts::run, &parts, thread);
    } catch (const std::system_error &) {
      parts.run(thread);  // no thread to be had: do it here
    }
  }
  parts.run(0);
  for (std::thread &other : others) other.join();
}

namespace {

struct Products {
  std::vector<float> floats, bytes;
};

// x W^T of sizes that fill no vector, tile or panel to its end.
Products products(const Table &table) {
  constexpr int64_t M = 15, K = 37, N = 29, group = 4, panel = 16;
  std::vector<float> x(M * K), W(N * K), scales(N);
  std::vector<Bytes> made(M);
  std::vector<int8_t> W8(N * K);
  for (int64_t i = 0; i < M * K; i++) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  for (int64_t i = 0; i < N * K; i++) W8[i] = static_cast<int8_t>(i * 53 % 127 - 63), W[i] = static_cast<float>(W8[i]) / 63;
  for (int64_t n = 0; n < N; n++) scales[n] = static_cast<float>(n + 1) / 1000;

  Products found{std::vector<float>(M * N), std::vector<float>(2 * M * N)};
  std::vector<float> packed((N + table.panel - 1) / table.panel * table.panel * K);
  table.pack(W.data(), K, K, N, packed.data());
  table.multiply(M, x.data(), K, packed.data(), K, N, nullptr, 0, found.floats.data(), N);

  constexpr int64_t width = (K + group - 1) / group * group;
  std::vector<int8_t> panels((N + panel - 1) / panel * panel * width);
  std::vector<int32_t> sums(N);
  std::vector<uint8_t> room(M * width);
  for (int64_t smaller : {0, 1}) {
    for (int8_t &w : W8) w = static_cast<int8_t>(smaller ? w / 4 : w);
    const int64_t levels = table.pack_bytes(W8.data(), K, K, N, panels.data(), sums.data());
    table.multiply_bytes(M, x.data(), K, panels.data(), levels, scales.data(), sums.data(), K, N, nullptr, 0,
                         found.bytes.data() + smaller * M * N, N, room.data(), made.data());
  }
  return found;
}

}  // namespace

// 1 if the kernels for AVX2 can run here.
EXPORT int has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 0;
#endif
}

// The functions of an instruction set (table.h), null where there are none.
EXPORT const Table *kernel_table(int avx2) {
#if defined(__x86_64__)
  return avx2 ? &avx2_table : &portable_table;
#else
  return avx2 ? nullptr : &portable_table;
#endif
}
EXPORT int64_t kernel_table_size() { return sizeof(Table); }

// 1 if two tables give the same products, in floats and in bytes, up to the order of their sums.
EXPORT int tables_agree(const Table *one, const Table *other) {
  const Products a = products(*one), b = products(*other);
  for (size_t i = 0; i < a.floats.size(); i++)
    if (!(std::fabs(a.floats[i] - b.floats[i]) < 1e-4f) || !(std::fabs(a.bytes[i] - b.bytes[i]) < 1e-4f)) return 0;
  return 1;
}

// A hash of the sources this was built from (sources.py), for the Python side to compare with those it sees.
#if !defined(REGARDE_SOURCES)
#define REGARDE_SOURCES ""
#endif
EXPORT const char *built_from() { return REGARDE_SOURCES; }

// The sizes of the arguments, for the Python side to compare with its own.
EXPORT int64_t size_of(int64_t which) {
  const int64_t sizes[] = {sizeof(Recurrent), sizeof(Layer), sizeof(Additive), sizeof(Window),       sizeof(Field),   sizeof(Before),
                           sizeof(After),     sizeof(Heads),    sizeof(CrossEntropy), sizeof(Dropout), sizeof(engine::Request),
                           sizeof(aligner::Bitext)};
  return which >= 0 && which < 12 ? sizes[which] : -1;
}

// Keep freed memory for the next step of training instead of giving it back and having it zeroed again, page by page.
EXPORT void keep_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);  // large blocks too come from the heap
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}
