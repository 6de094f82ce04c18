// A decoder that attends after each step of its stack (models/luong.py):
//     [e(y_{t-1}); h~_{t-1}] -> h_t -> a_t -> c_t -> h~_t = tanh(W [c_t; h_t])
#pragma once
#include "attention.h"
#include "cells.h"

namespace VARIANT {

template <class Real> struct AfterSteps {
  const After &a;
  int64_t first, count;

  Rows<Real> of(const void *tensor, int64_t N, int64_t t) const { return at<Real>(tensor, first, a.T, N, t); }
  Rows<Real> one(const void *tensor, int64_t N) const { return at<Real>(tensor, first, 1, N, 0); }
  CellStep<Real> step(int64_t layer, int64_t t) const {
    const int64_t H = a.H, G = gates_of(a.kind) * H;
    CellStep<Real> s;
    s.gates = of(a.gates[layer], G, t);
    s.base = reading(s.gates);  // what enters from below is there already
    s.before = reading(t ? of(a.outputs[layer], H, t - 1) : one(a.start[layer], H));
    s.carry_before = reading(t ? of(a.carry[layer], H, t - 1) : one(a.start_carry[layer], H));
    s.after = of(a.outputs[layer], H, t);
    s.carry = of(a.carry[layer], H, t);
    s.reset = of(a.reset[layer], H, t);
    s.mask = nullptr;
    s.mask_apart = 0;
    return s;
  }
  Rows<Real> fed(int64_t t) const { return t ? of(a.attentional, a.H, t - 1) : one(a.feed, a.H); }
  bool is_residual(int64_t layer) const { return layer + 1 >= a.residual_from; }
};

// Every matrix of the decoder, packed for one direction.
template <class Real> struct AfterWeights {
  Memory<Real> memory;
  Memory<CellWeights<Real>> cells;
  Memory<Packed<Real>> below;
  Packed<Real> feed, query, context, shown;

  static int64_t size(const After &a) {
    const int64_t H = a.H, G = gates_of(a.kind) * H, pad = panel_width<Real>() * (G + a.C + a.A + H);
    return a.L * (CellWeights<Real>::size(a.kind, H) + G * H + pad) + H * (a.A + a.C + H) + pad;
  }
  AfterWeights(const After &a, bool transposed) : memory(size(a)), cells(a.L), below(a.L) {
    const int64_t H = a.H, G = gates_of(a.kind) * H, A = a.A, C = a.C;
    Real *next = memory.first;
    auto one = [&](Packed<Real> &to, const void *W, int64_t rows, int64_t columns, int64_t apart) {
      const Real *from = static_cast<const Real *>(W);
      if (transposed) to.pack(from, rows, columns, apart, 1, next, a.threads);
      else to.pack(from, columns, rows, 1, apart, next, a.threads);
      next += Packed<Real>::size(to.K, to.N);
    };
    for (int64_t layer = 0; layer < a.L; layer++) {
      cells.first[layer] = CellWeights<Real>();
      below.first[layer] = Packed<Real>();
      next = cells.first[layer].pack(a.kind, H, a.U_gates[layer], a.U[layer], transposed, next, a.threads);
      if (layer) one(below.first[layer], a.W_below[layer], G, H, H);
    }
    one(feed, a.W_feed, G, H, H);
    if (a.W_query) one(query, a.W_query, A, H, H);
    one(context, a.W_combine, H, C, C + H);
    one(shown, static_cast<const Real *>(a.W_combine) + C, H, H, C + H);
  }
};

template <class Real> void after_forward(const After &a) {
  const int64_t H = a.H, A = a.A, C = a.C, G = gates_of(a.kind) * H;
  AfterWeights<Real> W(a, false);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    AfterSteps<Real> steps{a, first, count};
    for (int64_t t = 0; t < a.T; t++) {
      CellStep<Real> step = steps.step(0, t);
      multiply<Real>(count, reading(steps.fed(t)), W.feed, reading(steps.of(a.shares, G, t)), step.gates);
      cell_forward(a.kind, count, H, W.cells.first[0], step);
      Rows<Real> x = step.after;
      for (int64_t layer = 1; layer < a.L; layer++) {
        Rows<Real> below = steps.of(a.below[layer], H, t), noise = steps.of(a.noise[layer], H, t);
        for (int64_t row = 0; row < count; row++)
          FOR_LANES(Real, j, n, H) {
            Vector<Real> kept = load<Real>(x[row] + j, n);
            if (a.noise[layer]) kept *= load<Real>(noise[row] + j, n);
            store<Real>(below[row] + j, kept, n);
          }
        step = steps.step(layer, t);
        multiply<Real>(count, reading(below), W.below.first[layer], {static_cast<const Real *>(a.b_below[layer]), 0},
                       step.gates);
        cell_forward(a.kind, count, H, W.cells.first[layer], step);
        // what a layer shows: its output, and from residual_from on what stood below it too, before dropout
        Rows<Real> top = steps.of(a.top, H, t);
        for (int64_t row = 0; row < count; row++)
          FOR_LANES(Real, j, n, H) {
            Vector<Real> shown = load<Real>(step.after[row] + j, n);
            if (steps.is_residual(layer)) shown += load<Real>(x[row] + j, n);
            store<Real>(top[row] + j, shown, n);
          }
        x = top;
      }
      Rows<Real> top = steps.of(a.top, H, t), contexts = steps.of(a.contexts, C, t);
      if (a.L == 1)
        for (int64_t row = 0; row < count; row++) std::memcpy(top[row], x[row], sizeof(Real) * H);
      Rows<Real> queries = steps.of(a.queries, A, t);
      if (a.W_query) multiply<Real>(count, reading(top), W.query, {static_cast<const Real *>(a.b_query), 0}, queries);
      for (int64_t row = 0; row < count; row++) {
        const Real *q = a.W_query ? queries[row] : top[row];
        Source<Real>(a, first + row).attend(q, steps.of(a.weights, a.S, t)[row], contexts[row]);
      }
      Rows<Real> said = steps.of(a.attentional, H, t);
      multiply<Real>(count, reading(contexts), W.context, {nullptr, 0}, said);
      multiply<Real>(count, reading(top), W.shown, reading(said), said);
      for (int64_t row = 0; row < count; row++)
        FOR_LANES(Real, j, n, H) store<Real>(said[row] + j, tangent(load<Real>(said[row] + j, n)), n);
    }
  });
}

template <class Real> void after_backward(const After &a) {
  const int64_t H = a.H, A = a.A, C = a.C, S = a.S, G = gates_of(a.kind) * H;
  AfterWeights<Real> W(a, true);
  Memory<Real> memory(3 * a.B * H);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t thread) {
    AfterSteps<Real> steps{a, first, count};
    Rows<Real> d_feed = steps.one(a.d_feed, H), scratch = steps.one(memory.first, H);
    Rows<Real> d_top = steps.one(memory.first + a.B * H, H), d_below = steps.one(memory.first + 2 * a.B * H, H);
    for (int64_t t = a.T - 1; t >= 0; t--) {
      Rows<Real> said = steps.of(a.attentional, H, t), given = steps.of(a.d_attentional, H, t);
      Rows<Real> d_combined = steps.of(a.d_combined, H, t), d_contexts = steps.of(a.d_contexts, C, t);
      for (int64_t row = 0; row < count; row++)
        FOR_LANES(Real, j, n, H) {
          Vector<Real> h = load<Real>(said[row] + j, n);
          Vector<Real> d = load<Real>(given[row] + j, n) + load<Real>(d_feed[row] + j, n);
          store<Real>(d_combined[row] + j, d * (1 - h * h), n);
        }
      multiply<Real>(count, reading(d_combined), W.context, {nullptr, 0}, d_contexts);
      multiply<Real>(count, reading(d_combined), W.shown, {nullptr, 0}, d_top);
      Rows<Real> d_queries = steps.of(a.d_queries, A, t);
      for (int64_t row = 0; row < count; row++) {
        const Real *q = a.W_query ? steps.of(a.queries, A, t)[row] : steps.of(a.top, H, t)[row];
        Real *d_keys = a.v ? static_cast<Real *>(a.d_keys) + (first + row) * S * A : nullptr;
        Source<Real>(a, first + row)
            .attend_backward(q, steps.of(a.weights, S, t)[row], d_contexts[row],
                             a.d_weights ? steps.of(a.d_weights, S, t)[row] : nullptr, steps.of(a.d_scores, S, t)[row],
                             d_queries[row], d_keys, a.v ? static_cast<Real *>(a.d_v) + thread * A : nullptr);
        if (!a.W_query) add<Real>(d_top[row], d_queries[row], H);
      }
      if (a.W_query) multiply<Real>(count, reading(d_queries), W.query, reading(d_top), d_top);
      for (int64_t layer = a.L - 1; layer >= 0; layer--) {
        Rows<Real> d_state = steps.one(a.d_state[layer], H), d_carry = steps.one(a.d_carry[layer], H);
        Rows<Real> d_gates = steps.of(a.d_gates[layer], G, t);
        for (int64_t row = 0; row < count; row++) add<Real>(d_state[row], d_top[row], H);
        cell_backward(a.kind, count, H, W.cells.first[layer], steps.step(layer, t), d_state, d_carry, d_gates, scratch);
        if (!layer) continue;
        multiply<Real>(count, reading(d_gates), W.below.first[layer], {nullptr, 0}, d_below);
        Rows<Real> noise = steps.of(a.noise[layer], H, t);
        for (int64_t row = 0; row < count; row++)
          FOR_LANES(Real, j, n, H) {
            Vector<Real> d = load<Real>(d_below[row] + j, n);
            if (a.noise[layer]) d *= load<Real>(noise[row] + j, n);
            if (steps.is_residual(layer)) d += load<Real>(d_top[row] + j, n);
            store<Real>(d_top[row] + j, d, n);
          }
      }
      multiply<Real>(count, reading(steps.of(a.d_gates[0], G, t)), W.feed, {nullptr, 0}, d_feed);
    }
  });
}

}  // namespace VARIANT
