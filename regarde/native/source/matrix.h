// Products with a matrix that many steps share: packed once into panels of two vectors' width, then read in order.
//
//     y (M, N) = base (M, N) + x (M, K) W        M rows: the sentences of a batch at one step
//
// A tile of 6 rows by one panel keeps its 12 sums in registers (gcc needs the loops over them unrolled for that). Rows
// may lie apart: a step of a tensor (B, T, N) has rows T * N apart. A row's sums are added in the same order whatever
// the tile, so that neither batch nor threads change a result.
#pragma once
#include "parallel.h"
#include "vector.h"

namespace VARIANT {

// Rows of a tensor at one step.
template <class Real> struct Rows {
  Real *first;
  int64_t apart;
  Real *operator[](int64_t row) const { return first + row * apart; }
  Rows from(int64_t column) const { return {first + column, apart}; }
};
template <class Real> Rows<const Real> reading(Rows<Real> rows) { return {rows.first, rows.apart}; }

// The rows [first, …) of a tensor (B, T, N) at step t.
template <class Real> INLINE Rows<Real> at(const void *tensor, int64_t first, int64_t T, int64_t N, int64_t t) {
  return {static_cast<Real *>(const_cast<void *>(tensor)) + (first * T + t) * N, T * N};
}

template <class Real> constexpr int64_t panel_width() { return 2 * Lanes<Real>::count; }

template <class Real> struct Packed {
  Real *panels = nullptr;
  int64_t K = 0, N = 0;

  static int64_t size(int64_t K, int64_t N) {
    int64_t width = panel_width<Real>();
    return (N + width - 1) / width * width * K;
  }

  // `element(k, n)` of a matrix is at W[k * down + n * right].
  void pack(const Real *W, int64_t K_, int64_t N_, int64_t down, int64_t right, Real *into, int64_t threads = 1) {
    K = K_, N = N_, panels = into;
    constexpr int64_t width = panel_width<Real>();
    parallel((N + width - 1) / width, threads, [&](int64_t first, int64_t count, int64_t) {
      for (int64_t n0 = first * width; n0 < (first + count) * width; n0 += width) {
        Real *panel = panels + n0 * K;
        const Real *from = W + n0 * right;
        if (N - n0 < width) {
          for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < width; n++) panel[k * width + n] = n < N - n0 ? from[k * down + n * right] : 0;
        } else if (right == 1) {
          for (int64_t k = 0; k < K; k++) std::memcpy(panel + k * width, from + k * down, sizeof(Real) * width);
        } else {
          for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < width; n++) panel[k * width + n] = from[k * down + n * right];
        }
      }
    });
  }
};

template <int M, class Real>
INLINE void tile(Rows<const Real> x, const Real *panel, int64_t K, const Real *base, int64_t base_apart, Rows<Real> y,
                 int64_t columns) {
  constexpr int W = Lanes<Real>::count;
  Vector<Real> low[M], high[M];
  const int64_t beyond = columns - W;
  UNROLL for (int i = 0; i < M; i++) {
    if (base) {
      low[i] = load<Real>(base + i * base_apart, columns);
      high[i] = load<Real>(base + i * base_apart + W, beyond);
    } else {
      low[i] = high[i] = Vector<Real>{};
    }
  }
  const Real *row[M];
  UNROLL for (int i = 0; i < M; i++) row[i] = x[i];
  for (int64_t k = 0; k < K; k++) {
    if (M <= 2) __builtin_prefetch(panel + (k + 16) * 2 * W);  // so few rows wait for the weights, not for the sums
    Vector<Real> left = load<Real>(panel + k * 2 * W), right = load<Real>(panel + k * 2 * W + W);
    UNROLL for (int i = 0; i < M; i++) {
      Vector<Real> a = all<Real>(row[i][k]);
      low[i] += a * left;
      high[i] += a * right;
    }
  }
  UNROLL for (int i = 0; i < M; i++) {
    store<Real>(y[i], low[i], columns);
    store<Real>(y[i] + W, high[i], beyond);
  }
}

// One row by several panels: two sums would keep the processor waiting for each other, and one stream for the memory.
template <int P, class Real>
INLINE void wide_tile(const Real *x, const Real *panels, int64_t K, const Real *base, Real *y) {
  constexpr int W = Lanes<Real>::count;
  Vector<Real> sums[2 * P];
  UNROLL for (int i = 0; i < 2 * P; i++) sums[i] = base ? load<Real>(base + i * W) : Vector<Real>{};
  const int64_t apart = 2 * W * K;  // from panel to panel
  for (int64_t k = 0; k < K; k++) {
    const Vector<Real> a = all<Real>(x[k]);
    UNROLL for (int p = 0; p < P; p++) {
      const Real *at = panels + p * apart + k * 2 * W;
      __builtin_prefetch(at + 32 * W);
      sums[2 * p] += a * load<Real>(at);
      sums[2 * p + 1] += a * load<Real>(at + W);
    }
  }
  UNROLL for (int i = 0; i < 2 * P; i++) store<Real>(y + i * W, sums[i]);
}

// y = base + x W; `base` may be null for zero, y itself, or one row for all (apart = 0).
template <class Real>
void multiply(int64_t M, Rows<const Real> x, const Packed<Real> &W, Rows<const Real> base, Rows<Real> y) {
  const int64_t width = panel_width<Real>();
  int64_t n = 0;
  if (M == 1)
    for (; n + 4 * width <= W.N; n += 4 * width)
      wide_tile<4, Real>(x[0], W.panels + n * W.K, W.K, base.first ? base[0] + n : nullptr, y[0] + n);
  for (; n < W.N; n += width) {
    const Real *panel = W.panels + n * W.K;
    for (int64_t m = 0; m < M;) {
      const int64_t left = M - m;
      const Real *from = base.first ? base[m] + n : nullptr;
#define TILE(count) \
  tile<count, Real>({x[m], x.apart}, panel, W.K, from, base.apart, {y[m] + n, y.apart}, W.N - n), m += count
      // 7 and 8 rows are shared out evenly: a tile of one or two rows keeps the processor waiting for its sums
      if (left > 8 || left == 6) TILE(6);
      else if (left == 5) TILE(5);
      else if (left == 3) TILE(3);
      else if (left == 2) TILE(2);
      else if (left == 1) TILE(1);
      else TILE(4);
#undef TILE
    }
  }
}

}  // namespace VARIANT
