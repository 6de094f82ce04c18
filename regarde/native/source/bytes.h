// Products in bytes: activations of up to 8 bits times 7-bit weights, a quarter of the memory that floats take.
//
//     w ~ scale_n w8,  |w8| <= 63      x ~ low + step x8,  0 <= x8 <= levels      y = scale_n (step (x8 . w8) + low sum w8)
//
// `low` and `step` are those of a row of x. Four products are added in 16 bits: the weights of inputs (0, 1, 4, 5) and
// (2, 3, 6, 7) of every eight. `levels`, 130 to 255, is what the largest such sum of a matrix leaves room for, so that
// nothing overflows: whatever the processor, the integers are the same. Panels hold 16 outputs by 4 inputs.
//
// A processor with AVX512-VNNI adds four products to 32 bits in one instruction. The environment variable REGARDE_VNNI=0
// leaves it unused.
#pragma once
#include "matrix.h"
#include "table.h"

namespace VARIANT {

constexpr int64_t BYTE_PANEL = 16, BYTE_GROUP = 4;
inline int64_t grouped(int64_t K) { return (K + BYTE_GROUP - 1) / BYTE_GROUP * BYTE_GROUP; }

// The largest sum of four weights that are added together, of one sign.
inline int32_t largest_together(const int8_t *weights, int64_t K) {
  constexpr int64_t quads[2][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}};
  int32_t found = 0;
  for (int64_t k = 0; k < K; k += 2 * BYTE_GROUP)
    for (const auto &quad : quads) {
      int32_t above = 0, below = 0;
      for (int64_t one : quad) {
        const int32_t w = k + one < K ? weights[k + one] : 0;
        above += w > 0 ? w : 0, below -= w < 0 ? w : 0;
      }
      found = above > found ? above : found;
      found = below > found ? below : found;
    }
  return found;
}

// W (N, K), rows `apart` -> panels (N / 16, K / 4, 16, 4), and of each output the sum of its weights. Gives the levels.
inline int64_t pack_bytes(const int8_t *W, int64_t apart, int64_t K, int64_t N, int8_t *panels, int32_t *sums) {
  const int64_t groups = grouped(K) / BYTE_GROUP, padded = (N + BYTE_PANEL - 1) / BYTE_PANEL * BYTE_PANEL;
  std::memset(panels, 0, padded * grouped(K));
  int32_t most = 0;
  for (int64_t n = 0; n < N; n++) {
    const int8_t *row = W + n * apart;
    int8_t *to = panels + (n / BYTE_PANEL * groups * BYTE_PANEL + n % BYTE_PANEL) * BYTE_GROUP;
    sums[n] = 0;
    for (int64_t k = 0; k < K; k++) {
      to[k / BYTE_GROUP * BYTE_PANEL * BYTE_GROUP + k % BYTE_GROUP] = row[k];
      sums[n] += row[k];
    }
    const int32_t together = largest_together(row, K);
    most = together > most ? together : most;
  }
  return most * 255 <= INT16_MAX ? 255 : INT16_MAX / most;
}

// One row as bytes, each the nearest: no product is followed by a sum, which some processors would round only once.
inline Bytes to_bytes(const float *x, int64_t K, int64_t levels, uint8_t *out) {
  Vector<float> low = all<float>(x[0]), high = low;
  int64_t k = 0;
  for (; k + Lanes<float>::count <= K; k += Lanes<float>::count) {
    low = smaller(low, load<float>(x + k));
    high = larger(high, load<float>(x + k));
  }
  float least = -largest<float>(-low), most = largest<float>(high);
  for (; k < K; k++) least = x[k] < least ? x[k] : least, most = x[k] > most ? x[k] : most;
  const float step = most > least ? (most - least) / static_cast<float>(levels) : 1, inverse = 1 / step;
  k = 0;
#if defined(WITH_AVX2)
  auto eight = [&](int64_t at) { return _mm256_cvtps_epi32((__m256)((load<float>(x + at) - least) * inverse)); };
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // packing works on halves
  const __m256i top = _mm256_set1_epi8(static_cast<char>(levels));
  for (; k + 32 <= K; k += 32) {
    const __m256i first = _mm256_packs_epi32(eight(k), eight(k + 8)), then = _mm256_packs_epi32(eight(k + 16), eight(k + 24));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, then), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + k), _mm256_min_epu8(packed, top));
  }
#endif
  for (; k < K; k++) {
    const int32_t whole = static_cast<int32_t>(std::nearbyint((x[k] - least) * inverse));
    out[k] = static_cast<uint8_t>(whole < 0 ? 0 : whole > levels ? levels : whole);
  }
  for (; k < grouped(K); k++) out[k] = 0;
  return {least, step};
}

// What becomes of the sums of some rows: y = base + scale (step sum + low sum w)
struct ByteOutput {
  const float *scales, *base;
  int64_t base_apart;
  const int32_t *sums;
  float *y;
  int64_t y_apart;
  const Bytes *made;
  int64_t columns;  // that are left, of this panel and on

  INLINE void operator()(int64_t row, Integers found, int64_t first) const {
    const int64_t count = columns - first;
    if (count <= 0) return;
    Integers weights = {};
    if (count >= 8) std::memcpy(&weights, sums + first, sizeof weights);
    else std::memcpy(&weights, sums + first, sizeof(int32_t) * static_cast<size_t>(count));
    const Vector<float> product = made[row].step * __builtin_convertvector(found, Vector<float>) +
                                  made[row].low * __builtin_convertvector(weights, Vector<float>);
    const Vector<float> scaled = load<float>(scales + first, count) * product;
    store<float>(y + row * y_apart + first,
                 base ? load<float>(base + row * base_apart + first, count) + scaled : scaled, count);
  }
};

#if defined(WITH_AVX2)
INLINE __m256i weights_at(const int8_t *from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)); }
INLINE __m256i four_of(const uint8_t *x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return _mm256_set1_epi32(four);
}
#endif

template <int M>
INLINE void byte_tile(const uint8_t *x, int64_t apart, const int8_t *panel, int64_t groups, const ByteOutput &output) {
  Integers low[M], high[M];
#if defined(WITH_AVX2)
  __m256i sums[2][M];
  UNROLL for (int i = 0; i < M; i++) sums[0][i] = sums[1][i] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  int64_t g = 0;
  for (; g + 2 <= groups; g += 2) {
    if (M <= 2) __builtin_prefetch(panel + (g + 16) * 64), __builtin_prefetch(panel + (g + 17) * 64);
    const __m256i left = weights_at(panel + g * 64), right = weights_at(panel + g * 64 + 32);
    const __m256i left_then = weights_at(panel + g * 64 + 64), right_then = weights_at(panel + g * 64 + 96);
    UNROLL for (int i = 0; i < M; i++) {
      const uint8_t *from = x + i * apart + g * BYTE_GROUP;
      const __m256i now = four_of(from), then = four_of(from + BYTE_GROUP);
      const __m256i in_left = _mm256_add_epi16(_mm256_maddubs_epi16(now, left), _mm256_maddubs_epi16(then, left_then));
      sums[0][i] = _mm256_add_epi32(sums[0][i], _mm256_madd_epi16(in_left, ones));
      const __m256i in_right =
          _mm256_add_epi16(_mm256_maddubs_epi16(now, right), _mm256_maddubs_epi16(then, right_then));
      sums[1][i] = _mm256_add_epi32(sums[1][i], _mm256_madd_epi16(in_right, ones));
    }
  }
  for (; g < groups; g++) {
    if (M <= 2) __builtin_prefetch(panel + (g + 16) * 64);
    const __m256i left = weights_at(panel + g * 64), right = weights_at(panel + g * 64 + 32);
    UNROLL for (int i = 0; i < M; i++) {
      const __m256i four = four_of(x + i * apart + g * BYTE_GROUP);
      sums[0][i] = _mm256_add_epi32(sums[0][i], _mm256_madd_epi16(_mm256_maddubs_epi16(four, left), ones));
      sums[1][i] = _mm256_add_epi32(sums[1][i], _mm256_madd_epi16(_mm256_maddubs_epi16(four, right), ones));
    }
  }
  UNROLL for (int i = 0; i < M; i++) low[i] = (Integers)sums[0][i], high[i] = (Integers)sums[1][i];
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
    output(i, low[i], 0);
    output(i, high[i], 8);
  }
}

#if defined(WITH_AVX2) && !defined(__clang__)
#define WITH_VNNI
inline bool has_vnni() {
  static const bool found = [] {
    const char *wanted = std::getenv("REGARDE_VNNI");
    return !(wanted && *wanted == '0') && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  }();
  return found;
}

// A panel is as wide as a vector of 512 bits: one sum for each row and panel. Of P panels side by side, each four bytes of
// a row are read once.
template <int M, int P>
__attribute__((target("avx2,fma,avx512f,avx512vl,avx512vnni"), noinline)) void byte_tile_vnni(
    const uint8_t *x, int64_t apart, const int8_t *panel, int64_t groups, const ByteOutput &output) {
  constexpr int chains = M * P == 1 ? 4 : M * P <= 4 ? 2 : 1;  // a sum waits for the one before it: of few, several are apart
  __m512i sums[chains][P][M];
  UNROLL for (int c = 0; c < chains; c++)
    UNROLL for (int p = 0; p < P; p++)
      UNROLL for (int i = 0; i < M; i++) sums[c][p][i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g += chains)
    UNROLL for (int c = 0; c < chains; c++) {
      if (c && g + c >= groups) break;
      __m512i weights[P];
      UNROLL for (int p = 0; p < P; p++) {
        weights[p] = _mm512_loadu_si512(panel + (p * groups + g + c) * 64);
        __builtin_prefetch(panel + ((P + p) * groups + g + c) * 64);  // the next panels, while these are worked with
      }
      UNROLL for (int i = 0; i < M; i++) {
        int32_t four;
        std::memcpy(&four, x + i * apart + (g + c) * BYTE_GROUP, sizeof four);
        const __m512i all = _mm512_set1_epi32(four);
        UNROLL for (int p = 0; p < P; p++) sums[c][p][i] = _mm512_dpbusd_epi32(sums[c][p][i], all, weights[p]);
      }
    }
  UNROLL for (int p = 0; p < P; p++) {
    UNROLL for (int c = 1; c < chains; c++)
      UNROLL for (int i = 0; i < M; i++) sums[0][p][i] = _mm512_add_epi32(sums[0][p][i], sums[c][p][i]);
    const int64_t first = p * BYTE_PANEL;
    if (output.columns - first < BYTE_PANEL) {
      UNROLL for (int i = 0; i < M; i++) {
        output(i, (Integers)_mm512_castsi512_si256(sums[0][p][i]), first);
        output(i, (Integers)_mm512_extracti64x4_epi64(sums[0][p][i], 1), first + 8);
      }
      return;
    }
    const __m512 scales = _mm512_loadu_ps(output.scales + first);
    const __m512 weights = _mm512_cvtepi32_ps(_mm512_loadu_si512(output.sums + first));
    UNROLL for (int i = 0; i < M; i++) {
      const Bytes made = output.made[i];
      const __m512 product = made.step * _mm512_cvtepi32_ps(sums[0][p][i]) + made.low * weights;
      const __m512 scaled = scales * product;
      float *const y = output.y + i * output.y_apart + first;
      _mm512_storeu_ps(y, output.base ? _mm512_loadu_ps(output.base + i * output.base_apart + first) + scaled : scaled);
    }
  }
}
#endif

// One tile, by the best instructions there are.
template <int M>
INLINE void best_tile(const uint8_t *x, int64_t apart, const int8_t *panel, int64_t groups, const ByteOutput &output) {
#if defined(WITH_VNNI)
  if (has_vnni()) return byte_tile_vnni<M, 1>(x, apart, panel, groups, output);
#endif
  byte_tile<M>(x, apart, panel, groups, output);
}

// y = base + x W^T. `room` holds the rows as bytes (M, grouped K), `made` how they were made so (M).
inline void multiply_bytes(int64_t M, const float *x, int64_t x_apart, const int8_t *panels, int64_t levels,
                           const float *scales, const int32_t *sums, int64_t K, int64_t N, const float *base,
                           int64_t base_apart, float *y, int64_t y_apart, uint8_t *room, Bytes *made) {
  const int64_t width = grouped(K), groups = width / BYTE_GROUP;
  for (int64_t m = 0; m < M; m++) made[m] = to_bytes(x + m * x_apart, K, levels, room + m * width);
  auto output = [&](int64_t m, int64_t n) {
    return ByteOutput{scales + n, base ? base + m * base_apart + n : nullptr, base_apart, sums + n, y + m * y_apart + n,
                      y_apart, made + m, N - n};
  };
  for (int64_t n0 = 0, wide = BYTE_PANEL; n0 < N; n0 += wide) {
    int64_t done = 0;
#if defined(WITH_VNNI)
    if (has_vnni() && M >= 8) {  // twice the registers
      wide = N - n0 > BYTE_PANEL ? 2 * BYTE_PANEL : BYTE_PANEL;
      for (; done + 8 <= M; done += 8)
        (wide > BYTE_PANEL ? byte_tile_vnni<8, 2> : byte_tile_vnni<8, 1>)(
            room + done * width, width, panels + n0 * width, groups, output(done, n0));
    }
#endif
    for (int64_t n = n0; n < n0 + wide; n += BYTE_PANEL)
      for (int64_t m = done; m < M;) {
        const int64_t left = M - m;
#define TILE(count) best_tile<count>(room + m * width, width, panels + n * width, groups, output(m, n)), m += count
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
