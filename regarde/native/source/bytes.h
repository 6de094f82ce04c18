// Products in bytes: 8-bit activations times 7-bit weights, a quarter of the memory that floats take.
//
//     w ~ scale_n w8,  |w8| <= 63        x ~ step (x8 - 128),  0 <= x8 <= 255        y = step scale_n (x8 . w8 - 128 sum w8)
//
// Two products of at most 255 x 63 fit 16 bits, so that no sum saturates: whatever the processor, the integers are the
// same. Panels hold 16 outputs by 4 inputs.
#pragma once
#include "matrix.h"

namespace VARIANT {

constexpr int64_t BYTE_PANEL = 16, BYTE_GROUP = 4;
inline int64_t grouped(int64_t K) { return (K + BYTE_GROUP - 1) / BYTE_GROUP * BYTE_GROUP; }

// W (N, K), rows `apart` -> panels (N / 16, K / 4, 16, 4), and of each output 128 times the sum of its weights.
inline void pack_bytes(const int8_t *W, int64_t apart, int64_t K, int64_t N, int8_t *panels, int32_t *sums) {
  const int64_t groups = grouped(K) / BYTE_GROUP, padded = (N + BYTE_PANEL - 1) / BYTE_PANEL * BYTE_PANEL;
  std::memset(panels, 0, padded * grouped(K));
  for (int64_t n = 0; n < N; n++) {
    int32_t sum = 0;
    for (int64_t k = 0; k < K; k++) {
      const int8_t value = W[n * apart + k];
      panels[((n / BYTE_PANEL * groups + k / BYTE_GROUP) * BYTE_PANEL + n % BYTE_PANEL) * BYTE_GROUP + k % BYTE_GROUP] =
          value;
      sum += value;
    }
    sums[n] = 128 * sum;
  }
}

// One row as bytes; gives the size of a step.
inline float to_bytes(const float *x, int64_t K, uint8_t *out) {
  Vector<float> high = {};
  FOR_LANES(float, k, n, K) {
    Vector<float> piece = load<float>(x + k, n);
    high = larger(high, larger(piece, -piece));
  }
  const float top = largest<float>(high), step = top > 0 ? top / 127 : 1, inverse = 1 / step;
  for (int64_t k = 0; k < K; k++) out[k] = static_cast<uint8_t>(static_cast<int32_t>(x[k] * inverse + 128.5f));
  for (int64_t k = K; k < grouped(K); k++) out[k] = 128;
  return step;
}

template <int M>
INLINE void byte_tile(const uint8_t *x, int64_t apart, const int8_t *panel, int64_t groups, int32_t (*sums)[BYTE_PANEL]) {
#if defined(WITH_AVX2)
  __m256i low[M], high[M];
  UNROLL for (int i = 0; i < M; i++) low[i] = high[i] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t g = 0; g < groups; g++) {
    const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(panel + g * 64));
    const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(panel + g * 64 + 32));
    if (M <= 2) __builtin_prefetch(panel + (g + 16) * 64);
    UNROLL for (int i = 0; i < M; i++) {
      int32_t four;
      std::memcpy(&four, x + i * apart + g * BYTE_GROUP, sizeof four);
      const __m256i all = _mm256_set1_epi32(four);
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(_mm256_maddubs_epi16(all, left), ones));
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(_mm256_maddubs_epi16(all, right), ones));
    }
  }
  UNROLL for (int i = 0; i < M; i++) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(sums[i]), low[i]);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(sums[i] + 8), high[i]);
  }
#else
  for (int i = 0; i < M; i++)
    for (int64_t n = 0; n < BYTE_PANEL; n++) {
      int32_t sum = 0;
      for (int64_t g = 0; g < groups; g++)
        for (int64_t k = 0; k < BYTE_GROUP; k++)
          sum += static_cast<int32_t>(x[i * apart + g * BYTE_GROUP + k]) * panel[(g * BYTE_PANEL + n) * BYTE_GROUP + k];
      sums[i][n] = sum;
    }
#endif
}

// y = base + x W^T. `room` holds the rows as bytes (M, grouped K) and their steps (M).
inline void multiply_bytes(int64_t M, const float *x, int64_t x_apart, const int8_t *panels, const float *scales,
                           const int32_t *sums, int64_t K, int64_t N, const float *base, int64_t base_apart, float *y,
                           int64_t y_apart, uint8_t *room, float *steps) {
  const int64_t width = grouped(K), groups = width / BYTE_GROUP;
  for (int64_t m = 0; m < M; m++) steps[m] = to_bytes(x + m * x_apart, K, room + m * width);
  for (int64_t n0 = 0; n0 < N; n0 += BYTE_PANEL) {
    const int8_t *panel = panels + n0 * width;
    const int64_t columns = N - n0 < BYTE_PANEL ? N - n0 : BYTE_PANEL;
    for (int64_t m = 0; m < M;) {
      int32_t found[4][BYTE_PANEL];
      const int64_t left = M - m, rows = left >= 4 ? 4 : left;
      const uint8_t *from = room + m * width;
      if (rows == 4) byte_tile<4>(from, width, panel, groups, found);
      else if (rows == 3) byte_tile<3>(from, width, panel, groups, found);
      else if (rows == 2) byte_tile<2>(from, width, panel, groups, found);
      else byte_tile<1>(from, width, panel, groups, found);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t n = 0; n < columns; n++) {
          const float product = static_cast<float>(found[i][n] - sums[n0 + n]) * (steps[m + i] * scales[n0 + n]);
          y[(m + i) * y_apart + n0 + n] = base ? base[(m + i) * base_apart + n0 + n] + product : product;
        }
      m += rows;
    }
  }
}

}  // namespace VARIANT
