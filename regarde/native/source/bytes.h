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

// One row as bytes; gives the size of a step. Numbers are rounded to the nearest.
inline float to_bytes(const float *x, int64_t K, uint8_t *out) {
  Vector<float> high = {};
  FOR_LANES(float, k, n, K) {
    Vector<float> piece = load<float>(x + k, n);
    high = larger(high, larger(piece, -piece));
  }
  const float top = largest<float>(high), step = top > 0 ? top / 127 : 1, inverse = 1 / step;
  int64_t k = 0;
#if defined(WITH_AVX2)
  auto eight = [&](int64_t at) {
    return _mm256_cvttps_epi32((__m256)(load<float>(x + at) * inverse + 128.5f));
  };
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // packing works on halves
  for (; k + 32 <= K; k += 32) {
    const __m256i low = _mm256_packs_epi32(eight(k), eight(k + 8)), high = _mm256_packs_epi32(eight(k + 16), eight(k + 24));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + k), packed);
  }
#endif
  for (; k < K; k++) out[k] = static_cast<uint8_t>(static_cast<int32_t>(x[k] * inverse + 128.5f));
  for (; k < grouped(K); k++) out[k] = 128;
  return step;
}

// What becomes of the sums of one row: y = base + step scale (sum - 128 sum w)
struct ByteOutput {
  const float *scales, *base;
  const int32_t *sums;
  float *y, step;
  int64_t columns;  // of this panel

  INLINE void operator()(Integers found, int64_t first) const {
    const int64_t count = columns - first;
    if (count <= 0) return;
    Integers whole = {};
    Vector<float> product;
    if (count >= 8) {
      std::memcpy(&whole, sums + first, sizeof whole);
      product = __builtin_convertvector(found - whole, Vector<float>) * (step * load<float>(scales + first));
      store<float>(y + first, base ? load<float>(base + first) + product : product);
      return;
    }
    std::memcpy(&whole, sums + first, sizeof(int32_t) * static_cast<size_t>(count));
    product = __builtin_convertvector(found - whole, Vector<float>) * (step * load<float>(scales + first, count));
    store<float>(y + first, base ? load<float>(base + first, count) + product : product, count);
  }
};

template <int M>
INLINE void byte_tile(const uint8_t *x, int64_t apart, const int8_t *panel, int64_t groups, const ByteOutput *outputs) {
  Integers low[M], high[M];
#if defined(WITH_AVX2)
  __m256i left_sums[M], right_sums[M];
  UNROLL for (int i = 0; i < M; i++) left_sums[i] = right_sums[i] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t g = 0; g < groups; g++) {
    const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(panel + g * 64));
    const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(panel + g * 64 + 32));
    if (M <= 2) __builtin_prefetch(panel + (g + 16) * 64);
    UNROLL for (int i = 0; i < M; i++) {
      int32_t four;
      std::memcpy(&four, x + i * apart + g * BYTE_GROUP, sizeof four);
      const __m256i all = _mm256_set1_epi32(four);
      left_sums[i] = _mm256_add_epi32(left_sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(all, left), ones));
      right_sums[i] = _mm256_add_epi32(right_sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(all, right), ones));
    }
  }
  UNROLL for (int i = 0; i < M; i++) low[i] = (Integers)left_sums[i], high[i] = (Integers)right_sums[i];
#else
  for (int i = 0; i < M; i++) {
    int32_t sums[BYTE_PANEL] = {};
    for (int64_t n = 0; n < BYTE_PANEL; n++)
      for (int64_t g = 0; g < groups; g++)
        for (int64_t k = 0; k < BYTE_GROUP; k++)
          sums[n] += static_cast<int32_t>(x[i * apart + g * BYTE_GROUP + k]) * panel[(g * BYTE_PANEL + n) * BYTE_GROUP + k];
    std::memcpy(&low[i], sums, sizeof low[i]);
    std::memcpy(&high[i], sums + BYTE_PANEL / 2, sizeof high[i]);
  }
#endif
  UNROLL for (int i = 0; i < M; i++) {
    outputs[i](low[i], 0);
    outputs[i](high[i], 8);
  }
}

// y = base + x W^T. `room` holds the rows as bytes (M, grouped K) and their steps (M).
inline void multiply_bytes(int64_t M, const float *x, int64_t x_apart, const int8_t *panels, const float *scales,
                           const int32_t *sums, int64_t K, int64_t N, const float *base, int64_t base_apart, float *y,
                           int64_t y_apart, uint8_t *room, float *steps) {
  const int64_t width = grouped(K), groups = width / BYTE_GROUP;
  for (int64_t m = 0; m < M; m++) steps[m] = to_bytes(x + m * x_apart, K, room + m * width);
  for (int64_t n0 = 0; n0 < N; n0 += BYTE_PANEL) {
    const int8_t *panel = panels + n0 * width;
    for (int64_t m = 0; m < M;) {
      const int64_t left = M - m;
      ByteOutput outputs[5];
      UNROLL for (int i = 0; i < 5; i++) {
        const int64_t row = i < left ? m + i : m;
        outputs[i] = {scales + n0, base ? base + row * base_apart + n0 : nullptr, sums + n0, y + row * y_apart + n0,
                      steps[row], N - n0};
      }
      const uint8_t *from = room + m * width;
#define TILE(count) byte_tile<count>(from, width, panel, groups, outputs), m += count
      if (left >= 5 && left % 4) TILE(5);
      else if (left >= 4) TILE(4);
      else if (left == 3) TILE(3);
      else if (left == 2) TILE(2);
      else TILE(1);
#undef TILE
    }
  }
}

}  // namespace VARIANT
