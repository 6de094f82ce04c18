// Attention of many queries at once, in several heads (Vaswani et al. 2017, equation 1), for sentences: short enough
// that what one head sees of one sentence stays in the nearest memory.
//
//     P = softmax(scale Q K^T)        Y = P V                                    of each head of each sentence
//     dV = P^T dY      dS = P o (dY V^T - rows' sums of dY o Y) scale      dQ = dS K      dK = dS^T Q
//
// The backward pass computes P again: nothing over queries AND source is stored. Queries are taken BLOCK at a time, so
// that memory grows with the source alone.
#pragma once
#include "arguments.h"
#include "attention.h"
#include "matrix.h"
#include "parallel.h"

namespace VARIANT {

constexpr int64_t BLOCK = 48;

// What one head sees of a tensor (B, T, N, C), whose tokens and sentences may lie apart.
template <class Real> Rows<Real> head(const void *tensor, const int64_t *apart, int64_t b, int64_t n) {
  return {static_cast<Real *>(const_cast<void *>(tensor)) + b * apart[0] + n * apart[2], apart[1]};
}

template <class Real> struct Head {
  static constexpr int64_t width = panel_width<Real>();
  const Heads &a;
  const int64_t T, S, C, padded;  // padded: S up to whole panels
  Memory<Real> scores, d_scores, turned, room, keys_across, values_across, keys_along, values_along, block;
  Packed<Real> K_across, V_across, K_along, V_along;

  static int64_t up(int64_t n) { return (n + width - 1) / width * width; }

  explicit Head(const Heads &a)
      : a(a), T(a.T), S(a.S), C(a.C), padded(up(a.S)), scores(BLOCK * padded), d_scores(BLOCK * padded),
        turned(padded * BLOCK), room(BLOCK * C), keys_across(Packed<Real>::size(C, padded)),
        values_across(Packed<Real>::size(C, padded)), keys_along(Packed<Real>::size(S, C)),
        values_along(Packed<Real>::size(S, C)), block(Packed<Real>::size(BLOCK, C)) {}

  // x (S, C) as the factor of x^T: columns beyond S are zero, so that whole panels may be written
  void across(Packed<Real> &W, Rows<const Real> x, Memory<Real> &into) {
    W.pack(x.first, C, S, 1, x.apart, into.first);
    W.N = padded;
  }
  void along(Packed<Real> &W, Rows<const Real> x, int64_t rows, Memory<Real> &into) {
    W.pack(x.first, rows, C, x.apart, 1, into.first);
  }

  // How far query t may look.
  int64_t reach(int64_t t) const {
    const int64_t far = a.causal ? S - T + t + 1 : S;
    return far > 0 ? far : 0;
  }

  // P for `count` queries from t on.
  void look(Rows<const Real> Q, int64_t t, int64_t count, const uint8_t *mask) {
    Rows<Real> P = {scores.first, padded};
    multiply<Real>(count, {Q[t], Q.apart}, K_across, {nullptr, 0}, P);
    const Real scale = static_cast<Real>(a.scale);
    for (int64_t i = 0; i < count; i++) {
      Real *p = P[i];
      const int64_t far = reach(t + i);
      if (mask) for (int64_t s = 0; s < far; s++) p[s] = mask[s] ? p[s] : -INFINITY;
      for (int64_t s = far; s < padded; s++) p[s] = -INFINITY;
      Vector<Real> tops = all<Real>(-INFINITY);
      for (int64_t s = 0; s < padded; s += Lanes<Real>::count) tops = larger(tops, load<Real>(p + s));
      const Real highest = largest<Real>(tops) * scale;
      Vector<Real> sums = {};
      for (int64_t s = 0; s < padded; s += Lanes<Real>::count) {
        const Vector<Real> x = load<Real>(p + s);
        const Vector<Real> e = x > -INFINITY ? exponential(x * scale - highest) : Vector<Real>{};
        sums += e;
        store<Real>(p + s, e);
      }
      const Real total = sum<Real>(sums);
      const Real share = total > 0 ? 1 / total : 0;
      for (int64_t s = 0; s < padded; s += Lanes<Real>::count) store<Real>(p + s, load<Real>(p + s) * share);
    }
  }

  void forward(Rows<const Real> Q, Rows<const Real> K, Rows<const Real> V, const uint8_t *mask, Rows<Real> Y) {
    across(K_across, K, keys_across);
    along(V_along, V, S, values_along);
    for (int64_t t = 0; t < T; t += BLOCK) {
      const int64_t count = T - t < BLOCK ? T - t : BLOCK;
      look(Q, t, count, mask);
      multiply<Real>(count, {scores.first, padded}, V_along, {nullptr, 0}, {Y[t], Y.apart});
    }
  }

  // (count, S) -> (S, count)
  void turn(const Real *x, int64_t count) {
    for (int64_t s = 0; s < S; s++)
      for (int64_t i = 0; i < count; i++) turned.first[s * BLOCK + i] = x[i * padded + s];
  }

  void backward(Rows<const Real> Q, Rows<const Real> K, Rows<const Real> V, const uint8_t *mask, Rows<const Real> Y,
                Rows<const Real> dY, Rows<Real> dQ, Rows<Real> dK, Rows<Real> dV) {
    across(K_across, K, keys_across);
    across(V_across, V, values_across);
    along(K_along, K, S, keys_along);
    const Real scale = static_cast<Real>(a.scale);
    for (int64_t t = 0; t < T; t += BLOCK) {
      const int64_t count = T - t < BLOCK ? T - t : BLOCK;
      look(Q, t, count, mask);
      multiply<Real>(count, {dY[t], dY.apart}, V_across, {nullptr, 0}, {d_scores.first, padded});
      for (int64_t i = 0; i < count; i++) {
        const Real mean = dot(dY[t + i], Y[t + i], C);
        const Real *p = scores.first + i * padded;
        Real *d = d_scores.first + i * padded;
        for (int64_t s = 0; s < padded; s += Lanes<Real>::count)
          store<Real>(d + s, load<Real>(p + s) * (load<Real>(d + s) - mean) * scale);
      }
      multiply<Real>(count, {d_scores.first, padded}, K_along, {nullptr, 0}, {dQ[t], dQ.apart});
      const Rows<const Real> so_far_K = {t ? dK.first : nullptr, dK.apart}, so_far_V = {t ? dV.first : nullptr, dV.apart};
      turn(scores.first, count);
      along(V_along, {dY[t], dY.apart}, count, block);
      multiply<Real>(S, {turned.first, BLOCK}, V_along, so_far_V, dV);
      turn(d_scores.first, count);
      along(V_along, {Q[t], Q.apart}, count, block);
      multiply<Real>(S, {turned.first, BLOCK}, V_along, so_far_K, dK);
    }
  }
};

template <class Real, class Body> void each_head(const Heads &a, Body body) {
  parallel(a.B * a.N, a.threads, [&](int64_t first, int64_t count, int64_t) {
    Head<Real> one(a);
    for (int64_t i = first; i < first + count; i++) body(one, i / a.N, i % a.N);
  });
}

template <class Real> void heads_forward(const Heads &a) {
  each_head<Real>(a, [&](Head<Real> &one, int64_t b, int64_t n) {
    one.forward(head<const Real>(a.queries, a.queries_apart, b, n), head<const Real>(a.keys, a.keys_apart, b, n),
                head<const Real>(a.values, a.values_apart, b, n), a.mask ? a.mask + b * a.S : nullptr,
                head<Real>(a.contexts, a.contexts_apart, b, n));
  });
}

template <class Real> void heads_backward(const Heads &a) {
  each_head<Real>(a, [&](Head<Real> &one, int64_t b, int64_t n) {
    one.backward(head<const Real>(a.queries, a.queries_apart, b, n), head<const Real>(a.keys, a.keys_apart, b, n),
                 head<const Real>(a.values, a.values_apart, b, n), a.mask ? a.mask + b * a.S : nullptr,
                 head<const Real>(a.contexts, a.contexts_apart, b, n),
                 head<const Real>(a.d_contexts, a.contexts_apart, b, n), head<Real>(a.d_queries, a.d_queries_apart, b, n),
                 head<Real>(a.d_keys, a.d_keys_apart, b, n), head<Real>(a.d_values, a.d_values_apart, b, n));
  });
}

}  // namespace VARIANT
