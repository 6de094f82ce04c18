// A cell over a whole sentence (layers/cells.py, run). Sentences never meet, so each thread takes some of them from the
// first step to the last.
#pragma once
#include "cells.h"
#include "parallel.h"

namespace VARIANT {

template <class Real> struct Sentences {
  const Recurrent &a;
  int64_t first, count;

  // What comes before step number k, counted in the direction of reading.
  CellStep<Real> step(int64_t k) const {
    const int64_t H = a.H, T = a.T, G = gates_of(a.kind) * H;
    const int64_t t = a.backwards ? T - 1 - k : k, before = a.backwards ? t + 1 : t - 1;
    CellStep<Real> s;
    s.base = reading(at<Real>(a.shares, first, T, G, t));
    s.gates = at<Real>(a.gates, first, T, G, t);
    s.before = reading(k ? at<Real>(a.outputs, first, T, H, before) : at<Real>(a.start, first, 1, H, 0));
    s.carry_before = reading(k ? at<Real>(a.carry, first, T, H, before) : at<Real>(a.start_carry, first, 1, H, 0));
    s.after = at<Real>(a.outputs, first, T, H, t);
    s.carry = at<Real>(a.carry, first, T, H, t);
    s.reset = at<Real>(a.reset, first, T, H, t);
    s.mask = a.mask ? a.mask + first * T + t : nullptr;
    s.mask_apart = T;
    return s;
  }
};

template <class Real> void recurrent_forward(const Recurrent &a) {
  Memory<Real> memory(CellWeights<Real>::size(a.kind, a.H));
  CellWeights<Real> weights;
  weights.pack(a.kind, a.H, a.U_gates, a.U, false, memory.first, a.threads);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    Sentences<Real> sentences{a, first, count};
    for (int64_t k = 0; k < a.T; k++) cell_forward(a.kind, count, a.H, weights, sentences.step(k));
  });
}

template <class Real> void recurrent_backward(const Recurrent &a) {
  const int64_t H = a.H, T = a.T, G = gates_of(a.kind) * H;
  Memory<Real> memory(CellWeights<Real>::size(a.kind, H)), scratch(a.B * H);
  CellWeights<Real> weights;
  weights.pack(a.kind, H, a.U_gates, a.U, true, memory.first, a.threads);
  parallel(a.B, a.threads, [&](int64_t first, int64_t count, int64_t) {
    Sentences<Real> sentences{a, first, count};
    Rows<Real> d_state = at<Real>(a.d_state, first, 1, H, 0), d_carry = at<Real>(a.d_carry, first, 1, H, 0);
    for (int64_t k = T - 1; k >= 0; k--) {
      const int64_t t = a.backwards ? T - 1 - k : k;
      Rows<Real> given = at<Real>(a.d_outputs, first, T, H, t);
      for (int64_t row = 0; row < count; row++) add<Real>(d_state[row], given[row], H);
      cell_backward(a.kind, count, H, weights, sentences.step(k), d_state, d_carry, at<Real>(a.d_gates, first, T, G, t),
                    at<Real>(scratch.first, first, 1, H, 0));
    }
  });
}

}  // namespace VARIANT
