// One query against the source: score, softmax, context, and back. The tanh of the additive score is computed again in
// the backward pass: no tensor over batch, steps, source AND size is ever stored.
//
//     e_s = v . tanh(q + k_s)   or   q . k_s        a = softmax(e) over the tokens        c = sum_s a_s value_s
#pragma once
#include "arguments.h"
#include "matrix.h"
#include "parallel.h"

namespace VARIANT {

template <class Real> INLINE Real additive_score(const Real *q, const Real *k, const Real *v, int64_t A) {
  Vector<Real> total = {};
  int64_t done = 0;
  if constexpr (sizeof(Real) == sizeof(float)) {
    constexpr int64_t width = 4 * Lanes<float>::count;
    Four totals = {};
    for (; done + width <= A; done += width) totals = totals + tangent(four(q + done) + four(k + done)) * four(v + done);
    total = (totals.v[0] + totals.v[1]) + (totals.v[2] + totals.v[3]);
  }
  q += done, k += done, v += done;
  FOR_LANES(Real, a, n, A - done) total += tangent(load<Real>(q + a, n) + load<Real>(k + a, n)) * load<Real>(v + a, n);
  return sum<Real>(total);
}

template <class Real> INLINE Real dot(const Real *x, const Real *y, int64_t size) {
  Vector<Real> total = {};
  FOR_LANES(Real, j, n, size) total += load<Real>(x + j, n) * load<Real>(y + j, n);
  return sum<Real>(total);
}

// d_q += , d_v += , d_keys += for the gradient `d_scores` (S) of one query's scores.
template <class Real>
INLINE void additive_backward_row(const Real *q, const Real *keys, const Real *v, const Real *d_scores, int64_t S,
                                  int64_t A, Real *d_q, Real *d_keys, Real *d_v) {
  FOR_LANES(Real, a, n, A) {
    Vector<Real> asked = load<Real>(q + a, n), direction = load<Real>(v + a, n);
    Vector<Real> to_q = {}, to_v = load<Real>(d_v + a, n);
    for (int64_t s = 0; s < S; s++) {
      Vector<Real> bent = tangent(asked + load<Real>(keys + s * A + a, n));
      to_v += d_scores[s] * bent;
      Vector<Real> inside = (d_scores[s] * direction) * (1 - bent * bent);
      to_q += inside;
      store<Real>(d_keys + s * A + a, load<Real>(d_keys + s * A + a, n) + inside, n);
    }
    store<Real>(d_q + a, load<Real>(d_q + a, n) + to_q, n);
    store<Real>(d_v + a, to_v, n);
  }
}

// What one sentence offers to every query.
template <class Real> struct Source {
  const Real *keys, *values, *v;  // (S, A), (S, C), (A) or null for the dot product
  const uint8_t *mask;            // (S)
  int64_t S, A, C;

  template <class Arguments> Source(const Arguments &a, int64_t row)
      : keys(static_cast<const Real *>(a.keys) + row * a.S * a.A),
        values(static_cast<const Real *>(a.values) + row * a.S * a.C), v(static_cast<const Real *>(a.v)),
        mask(a.mask + row * a.S), S(a.S), A(a.A), C(a.C) {}
  Source(const Real *keys, const Real *values, const Real *v, const uint8_t *mask, int64_t S, int64_t A, int64_t C)
      : keys(keys), values(values), v(v), mask(mask), S(S), A(A), C(C) {}

  void attend(const Real *q, Real *weights, Real *context) const {
    Real highest = -INFINITY;
    for (int64_t s = 0; s < S; s++) {
      if (!mask[s]) { weights[s] = 0; continue; }
      const Real *k = keys + s * A;
      weights[s] = v ? additive_score(q, k, v, A) : dot(q, k, A);
      highest = weights[s] > highest ? weights[s] : highest;
    }
    FOR_LANES(Real, s, n, S) store<Real>(weights + s, exponential(load<Real>(weights + s, n) - highest), n);
    Real total = 0;
    for (int64_t s = 0; s < S; s++) total += weights[s] = mask[s] ? weights[s] : 0;
    for (int64_t s = 0; s < S; s++) weights[s] /= total;
    bring(weights, context);
  }

  // sum_s a_s value_s, four vectors at a time
  void bring(const Real *weights, Real *context) const {
    constexpr int W = Lanes<Real>::count;
    int64_t c = 0;
    for (; c + 4 * W <= C; c += 4 * W) {
      Vector<Real> total[4] = {};
      for (int64_t s = 0; s < S; s++)
        UNROLL for (int i = 0; i < 4; i++) total[i] += weights[s] * load<Real>(values + s * C + c + i * W);
      UNROLL for (int i = 0; i < 4; i++) store<Real>(context + c + i * W, total[i]);
    }
    for (; c < C; c += W) {
      Vector<Real> total = {};
      for (int64_t s = 0; s < S; s++) total += weights[s] * load<Real>(values + s * C + c, C - c);
      store<Real>(context + c, total, C - c);
    }
  }

  // d_scores (S) from what reaches context (C) and weights (S, or null); then d_q, and d_keys and d_v if additive.
  void attend_backward(const Real *q, const Real *weights, const Real *d_context, const Real *d_weights, Real *d_scores,
                       Real *d_q, Real *d_keys, Real *d_v) const {
    Real mean = 0;
    for (int64_t s = 0; s < S; s++) {
      d_scores[s] = mask[s] ? dot(d_context, values + s * C, C) + (d_weights ? d_weights[s] : 0) : 0;
      mean += weights[s] * d_scores[s];
    }
    for (int64_t s = 0; s < S; s++) d_scores[s] = weights[s] * (d_scores[s] - mean);
    std::memset(d_q, 0, sizeof(Real) * A);
    if (v) return additive_backward_row(q, keys, v, d_scores, S, A, d_q, d_keys, d_v);
    FOR_LANES(Real, j, n, A) {
      Vector<Real> total = {};
      for (int64_t s = 0; s < S; s++) total += d_scores[s] * load<Real>(keys + s * A + j, n);
      store<Real>(d_q + j, total, n);
    }
  }
};

template <class Real> void additive_forward(const Additive &a) {
  const Real *queries = static_cast<const Real *>(a.queries), *keys = static_cast<const Real *>(a.keys);
  Real *scores = static_cast<Real *>(a.scores);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    for (int64_t b = first; b < first + count; b++)
      for (int64_t t = 0; t < a.T; t++)
        for (int64_t s = 0; s < a.S; s++)
          scores[(b * a.T + t) * a.S + s] = additive_score(queries + (b * a.T + t) * a.A, keys + (b * a.S + s) * a.A,
                                                           static_cast<const Real *>(a.v), a.A);
  });
}

template <class Real> void additive_backward(const Additive &a) {
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t thread) {
    for (int64_t b = first; b < first + count; b++)
      for (int64_t t = 0; t < a.T; t++) {
        const int64_t query = (b * a.T + t) * a.A, key = b * a.S * a.A;
        additive_backward_row(static_cast<const Real *>(a.queries) + query, static_cast<const Real *>(a.keys) + key,
                              static_cast<const Real *>(a.v), static_cast<const Real *>(a.d_scores) + (b * a.T + t) * a.S,
                              a.S, a.A, static_cast<Real *>(a.d_queries) + query, static_cast<Real *>(a.d_keys) + key,
                              static_cast<Real *>(a.d_v) + thread * a.A);
      }
  });
}

}  // namespace VARIANT
