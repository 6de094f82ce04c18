// Dropout by a hash of (seed, place): no state, so that threads change nothing and the backward pass draws the same.
#pragma once
#include "arguments.h"
#include "parallel.h"
#include "vector.h"

namespace VARIANT {

// Two rounds of multiply and shift after the seed is mixed in: every bit of the place reaches every bit of the result.
INLINE Naturals hash(Naturals place, uint32_t low, uint32_t high) {
  Naturals h = place * 0x9E3779B1u + low;
  h = (h ^ (h >> 16)) * 0x85EBCA77u;
  h = (h ^ (h >> 13) ^ high) * 0xC2B2AE3Du;
  return h ^ (h >> 16);
}

template <class Real> void dropout(const Dropout &a) {
  const uint32_t low = static_cast<uint32_t>(a.seed), high = static_cast<uint32_t>(a.seed >> 32);
  const uint32_t bound = static_cast<uint32_t>(a.probability * 4294967296.0);
  const Real scale = static_cast<Real>(1 / (1 - a.probability));
  const Real *x = static_cast<const Real *>(a.x);
  Real *y = static_cast<Real *>(a.y);
  parallel((a.count + 7) / 8, a.threads, [&](int64_t first, int64_t count, int64_t) {
    const Naturals lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int64_t i = first * 8; i < (first + count) * 8; i += 8) {
      Naturals drawn = hash(lanes + static_cast<uint32_t>(i), low, high + static_cast<uint32_t>(i >> 32));
      auto keep = drawn >= bound;
      const int64_t n = a.count - i < 8 ? a.count - i : 8;
      if (sizeof(Real) == 4 && n == 8) {
        Vector<float> v = load<float>(reinterpret_cast<const float *>(x) + i) * static_cast<float>(scale);
        store<float>(reinterpret_cast<float *>(y) + i, keep ? v : Vector<float>{});
      } else {
        for (int64_t k = 0; k < n; k++) y[i + k] = keep[k] ? x[i + k] * scale : 0;
      }
    }
  });
}

}  // namespace VARIANT
