// The backward messages of a conditional random field (models/tagger.py), for a batch, in time linear in the words:
//
//     beta_n(y) = A[y, end]      beta_i(y) = log sum_z exp(A[y, z] + x_{i+1}(z)),   x = P + beta,  z a tag
//
// The sum is a product with exp(A), whose rows are scaled by their largest number, and exp(x), scaled by its own: one
// exponential for each tag and word, not for each pair of tags. Where such a product is too small to be exact, the sum
// is computed pair by pair. The gradients go the other way, from the first word to the last:
//
//     w(y, z) = exp(A[y, z] + x(z) - beta(y))      dx(z) = sum_y d_beta(y) w(y, z)      dA[y, z] += d_beta(y) w(y, z)
#pragma once
#include "arguments.h"
#include "parallel.h"
#include "vector.h"

namespace VARIANT {

template <class Real> struct Messages {
  static constexpr Real least = static_cast<Real>(1e-30);  // smaller products are computed pair by pair
  const Field &a;
  const int64_t V, width;  // width: V up to whole vectors
  const Real *A;
  Memory<Real> along, across, tops, x, e, totals, shares, outer;  // exp(A) by rows and by columns

  explicit Messages(const Field &a)
      : a(a), V(a.V), width((a.V + Lanes<Real>::count - 1) / Lanes<Real>::count * Lanes<Real>::count),
        A(static_cast<const Real *>(a.A)), along(V * width), across(V * width), tops(width), x(width), e(width),
        totals(width), shares(width), outer(V * width) {
    std::memset(along.first, 0, sizeof(Real) * V * width);
    std::memset(across.first, 0, sizeof(Real) * V * width);
    std::memset(outer.first, 0, sizeof(Real) * V * width);
    std::memset(shares.first, 0, sizeof(Real) * width);
    for (int64_t y = 0; y < V; y++) {
      Real top = -INFINITY;
      for (int64_t z = a.first; z < V; z++) top = A[y * V + z] > top ? A[y * V + z] : top;
      tops.first[y] = top;
      for (int64_t z = a.first; z < V; z++)
        along.first[y * width + z] = across.first[z * width + y] = std::exp(A[y * V + z] - top);
    }
  }

  // e = exp(x - its maximum) and totals = exp(A) e, of the word whose P and beta these are; returns the maximum.
  Real look(const Real *P, const Real *beta) {
    Real top = -INFINITY;
    for (int64_t z = a.first; z < V; z++) {
      x.first[z] = P[z] + beta[z];
      top = x.first[z] > top ? x.first[z] : top;
    }
    for (int64_t z = 0; z < a.first; z++) x.first[z] = -INFINITY;
    for (int64_t z = V; z < width; z++) x.first[z] = -INFINITY;
    for (int64_t z = 0; z < width; z += Lanes<Real>::count)
      store<Real>(e.first + z, exponential(load<Real>(x.first + z) - top));
    for (int64_t z = 0; z < a.first; z++) e.first[z] = 0;
    for (int64_t z = V; z < width; z++) e.first[z] = 0;
    for (int64_t y = 0; y < width; y += Lanes<Real>::count) {
      Vector<Real> total = {};
      for (int64_t z = a.first; z < V; z++) total += e.first[z] * load<Real>(across.first + z * width + y);
      store<Real>(totals.first + y, total);
    }
    return top;
  }

  // log sum_z exp(A[y, z] + x(z)), pair by pair
  Real exactly(int64_t y) const {
    Real top = -INFINITY, total = 0;
    for (int64_t z = a.first; z < V; z++) top = A[y * V + z] + x.first[z] > top ? A[y * V + z] + x.first[z] : top;
    for (int64_t z = a.first; z < V; z++) total += std::exp(A[y * V + z] + x.first[z] - top);
    return top + std::log(total);
  }

  void forward(int64_t b) {
    const Real *P = static_cast<const Real *>(a.P) + b * a.S * V;
    Real *beta = static_cast<Real *>(a.beta) + b * a.S * V;
    for (int64_t i = a.S - 1; i >= 0; i--) {
      Real *here = beta + i * V;
      if (i + 1 >= a.lengths[b]) {
        for (int64_t y = 0; y < V; y++) here[y] = A[y * V + a.end];
        continue;
      }
      const Real top = look(P + (i + 1) * V, here + V);
      for (int64_t y = 0; y < V; y++)
        here[y] = totals.first[y] < least ? exactly(y) : top + tops.first[y] + std::log(totals.first[y]);
    }
  }

  // d_beta becomes all that reaches beta; d_P = dx.
  void backward(int64_t b, Real *d_A) {
    const int64_t n = a.lengths[b];
    const Real *P = static_cast<const Real *>(a.P) + b * a.S * V, *beta = static_cast<const Real *>(a.beta) + b * a.S * V;
    Real *d_beta = static_cast<Real *>(a.d_beta) + b * a.S * V, *d_P = static_cast<Real *>(a.d_P) + b * a.S * V;
    for (int64_t i = 0; i < a.S; i++) {
      Real *d = d_beta + i * V;
      for (int64_t y = 0; y < V; y++) d[y] += d_P[i * V + y];  // x contains beta
      if (i + 1 >= n) {
        for (int64_t y = 0; y < V; y++) d_A[y * V + a.end] += d[y];
        continue;
      }
      look(P + (i + 1) * V, beta + (i + 1) * V);
      Real *dx = d_P + (i + 1) * V;
      for (int64_t y = 0; y < V; y++) {
        const bool small = totals.first[y] < least;
        shares.first[y] = small ? 0 : d[y] / totals.first[y];
        if (small && d[y] != 0) pair_by_pair(y, d[y], beta[i * V + y], dx, d_A + y * V);
      }
      for (int64_t y = 0; y < V; y++) {
        const Vector<Real> share = all<Real>(shares.first[y]);
        Real *row = outer.first + y * width;
        for (int64_t z = 0; z < width; z += Lanes<Real>::count)
          store<Real>(row + z, load<Real>(row + z) + share * load<Real>(e.first + z));
      }
      FOR_LANES(Real, z, k, V) {
        Vector<Real> total = {};
        for (int64_t y = 0; y < V; y++) total += shares.first[y] * load<Real>(along.first + y * width + z);
        store<Real>(dx + z, load<Real>(dx + z, k) + total * load<Real>(e.first + z), k);
      }
    }
  }

  void pair_by_pair(int64_t y, Real d, Real beta, Real *dx, Real *d_A) const {
    for (int64_t z = a.first; z < V; z++) {
      const Real w = d * std::exp(A[y * V + z] + x.first[z] - beta);
      dx[z] += w;
      d_A[z] += w;
    }
  }

  // What exp(A) multiplies is the same for all words.
  void finish(Real *d_A) const {
    for (int64_t y = 0; y < V; y++)
      for (int64_t z = 0; z < V; z++) d_A[y * V + z] += along.first[y * width + z] * outer.first[y * width + z];
  }
};

template <class Real> void field_forward(const Field &a) {
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    Messages<Real> messages(a);
    for (int64_t b = first; b < first + count; b++) messages.forward(b);
  });
}

template <class Real> void field_backward(const Field &a) {
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t thread) {
    Messages<Real> messages(a);
    Real *d_A = static_cast<Real *>(a.d_A) + thread * a.V * a.V;
    for (int64_t b = first; b < first + count; b++) messages.backward(b, d_A);
    messages.finish(d_A);
  });
}

}  // namespace VARIANT
