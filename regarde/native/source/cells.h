// One step of a recurrent cell, forward and backward, for M sentences.
//
// Axes: M sentences, H hidden, G gate pre-activations (1, 3 or 4 H). The equations are those of layers/cells.py:
//
//     simple   s = tanh(a)                                                              a = share + U s_prev
//     GRU      r, z = sigmoid(share + U_gates s_prev),  n = tanh(share + U (r o s_prev)),  s = s_prev + z o (n - s_prev)
//     LSTM     i, f, o = sigmoid(a),  g = tanh(a),  c = f o c_prev + i o g,  s = o o tanh(c)
#pragma once
#include "arguments.h"
#include "matrix.h"

namespace VARIANT {

INLINE int64_t gates_of(int64_t kind) { return kind == SIMPLE ? 1 : kind == GRU ? 3 : 4; }

// The recurrent matrices: U as it acts on a state, or its transpose as it acts on a gradient.
template <class Real> struct CellWeights {
  Packed<Real> U_gates, U;

  static int64_t size(int64_t kind, int64_t H) {
    int64_t larger_way = Packed<Real>::size(H, gates_of(kind) * H) + Packed<Real>::size(gates_of(kind) * H, H);
    return larger_way + 4 * panel_width<Real>() * H;
  }
  Real *pack(int64_t kind, int64_t H, const void *gates, const void *rest, bool transposed, Real *into, int64_t threads) {
    if (kind == GRU) into = pack_one(U_gates, gates, 2 * H, H, transposed, into, threads);
    return pack_one(U, rest, (kind == LSTM ? 4 : 1) * H, H, transposed, into, threads);
  }
  static Real *pack_one(Packed<Real> &to, const void *W, int64_t G, int64_t H, bool transposed, Real *into,
                        int64_t threads) {
    const Real *from = static_cast<const Real *>(W);
    if (transposed) to.pack(from, G, H, H, 1, into, threads);
    else to.pack(from, H, G, 1, H, into, threads);
    return into + Packed<Real>::size(to.K, to.N);
  }
};

// Everything a cell reads and writes at one step.
template <class Real> struct CellStep {
  Rows<const Real> base;                    // (M, G) shares: all but the state's own part of the gates
  Rows<Real> gates;                         // (M, G)
  Rows<const Real> before, carry_before;    // (M, H)
  Rows<Real> after, carry, reset;           // (M, H)
  const uint8_t *mask;                      // of this step, or null
  int64_t mask_apart;

  bool is_token(int64_t row) const { return !mask || mask[row * mask_apart]; }
};

template <class Real> void keep(const CellStep<Real> &step, int64_t row, int64_t H, bool with_carry) {
  std::memcpy(step.after[row], step.before[row], sizeof(Real) * H);
  if (with_carry) std::memcpy(step.carry[row], step.carry_before[row], sizeof(Real) * H);
}

// The state after a step, of the simple cell or the LSTM, whose gates hold their pre-activations.
template <class Real> void activate(int64_t kind, int64_t M, int64_t H, const CellStep<Real> &step) {
  for (int64_t row = 0; row < M; row++) {
    if (!step.is_token(row)) { keep(step, row, H, kind == LSTM); continue; }
    Real *gate = step.gates[row];
    if (kind == SIMPLE) {
      FOR_LANES(Real, j, n, H) store<Real>(step.after[row] + j, tangent(load<Real>(gate + j, n)), n);
      continue;
    }
    Real *i = gate, *f = i + H, *o = f + H, *g = o + H;
    FOR_LANES(Real, j, n, H) {
      Vector<Real> write = sigmoid(load<Real>(i + j, n)), forget = sigmoid(load<Real>(f + j, n));
      Vector<Real> show = sigmoid(load<Real>(o + j, n)), fresh = tangent(load<Real>(g + j, n));
      store<Real>(i + j, write, n), store<Real>(f + j, forget, n);
      store<Real>(o + j, show, n), store<Real>(g + j, fresh, n);
      Vector<Real> c = forget * load<Real>(step.carry_before[row] + j, n) + write * fresh;
      store<Real>(step.carry[row] + j, c, n);
      store<Real>(step.after[row] + j, show * tangent(c), n);
    }
  }
}

template <class Real>
void cell_forward(int64_t kind, int64_t M, int64_t H, const CellWeights<Real> &weights, const CellStep<Real> &step) {
  if (kind == GRU) {
    multiply<Real>(M, step.before, weights.U_gates, step.base, step.gates);
    for (int64_t row = 0; row < M; row++) {
      Real *r = step.gates[row], *z = r + H;
      FOR_LANES(Real, j, n, H) {
        Vector<Real> reset = sigmoid(load<Real>(r + j, n));
        store<Real>(r + j, reset, n);
        store<Real>(z + j, sigmoid(load<Real>(z + j, n)), n);
        store<Real>(step.reset[row] + j, reset * load<Real>(step.before[row] + j, n), n);
      }
    }
    multiply<Real>(M, reading(step.reset), weights.U, step.base.from(2 * H), step.gates.from(2 * H));
    for (int64_t row = 0; row < M; row++) {
      if (!step.is_token(row)) { keep(step, row, H, false); continue; }
      Real *z = step.gates[row] + H, *candidate = z + H;
      FOR_LANES(Real, j, n, H) {
        Vector<Real> fresh = tangent(load<Real>(candidate + j, n)), old = load<Real>(step.before[row] + j, n);
        store<Real>(candidate + j, fresh, n);
        store<Real>(step.after[row] + j, old + load<Real>(z + j, n) * (fresh - old), n);
      }
    }
    return;
  }
  multiply<Real>(M, step.before, weights.U, step.base, step.gates);
  activate(kind, M, H, step);
}

// The gradients of the pre-activations, and what of d_state and d_carry passes a step by, as cell_backward has them.
template <class Real>
void gate_gradients(int64_t kind, int64_t M, int64_t H, const CellStep<Real> &step, Rows<Real> d_state,
                    Rows<Real> d_carry, Rows<Real> d_gates) {
  const int64_t G = gates_of(kind) * H;
  for (int64_t row = 0; row < M; row++) {
    Real *d = d_gates[row], *ds = d_state[row];
    if (!step.is_token(row)) { std::memset(d, 0, sizeof(Real) * G); continue; }
    const Real *gate = step.gates[row];
    FOR_LANES(Real, j, n, H) {
      Vector<Real> given = load<Real>(ds + j, n);
      if (kind == SIMPLE) {
        Vector<Real> s = load<Real>(step.after[row] + j, n);
        store<Real>(d + j, given * (1 - s * s), n);
        store<Real>(ds + j, Vector<Real>{}, n);
      } else if (kind == GRU) {
        Vector<Real> z = load<Real>(gate + H + j, n), fresh = load<Real>(gate + 2 * H + j, n);
        Vector<Real> old = load<Real>(step.before[row] + j, n);
        store<Real>(d + H + j, given * (fresh - old) * z * (1 - z), n);
        store<Real>(d + 2 * H + j, given * z * (1 - fresh * fresh), n);
        store<Real>(ds + j, given * (1 - z), n);
      } else {
        Vector<Real> i = load<Real>(gate + j, n), f = load<Real>(gate + H + j, n), o = load<Real>(gate + 2 * H + j, n);
        Vector<Real> g = load<Real>(gate + 3 * H + j, n), shown = tangent(load<Real>(step.carry[row] + j, n));
        Vector<Real> dc = load<Real>(d_carry[row] + j, n) + given * o * (1 - shown * shown);
        store<Real>(d + j, dc * g * i * (1 - i), n);
        store<Real>(d + H + j, dc * load<Real>(step.carry_before[row] + j, n) * f * (1 - f), n);
        store<Real>(d + 2 * H + j, given * shown * o * (1 - o), n);
        store<Real>(d + 3 * H + j, dc * i * (1 - g * g), n);
        store<Real>(d_carry[row] + j, dc * f, n);
        store<Real>(ds + j, Vector<Real>{}, n);
      }
    }
  }
}

// d_state, d_carry (M, H): of the state after this step on entry, before it on return. d_gates: (M, G).
// `scratch` (M, H). Where there is no token the gradient passes and the gates get none.
template <class Real>
void cell_backward(int64_t kind, int64_t M, int64_t H, const CellWeights<Real> &weights, const CellStep<Real> &step,
                   Rows<Real> d_state, Rows<Real> d_carry, Rows<Real> d_gates, Rows<Real> scratch) {
  gate_gradients(kind, M, H, step, d_state, d_carry, d_gates);
  if (kind != GRU) return multiply<Real>(M, reading(d_gates), weights.U, reading(d_state), d_state);
  multiply<Real>(M, reading(d_gates.from(2 * H)), weights.U, {nullptr, 0}, scratch);  // of r o s_prev
  for (int64_t row = 0; row < M; row++) {
    if (!step.is_token(row)) continue;
    FOR_LANES(Real, j, n, H) {
      Vector<Real> r = load<Real>(step.gates[row] + j, n), d = load<Real>(scratch[row] + j, n);
      store<Real>(d_gates[row] + j, d * load<Real>(step.before[row] + j, n) * r * (1 - r), n);
      store<Real>(d_state[row] + j, load<Real>(d_state[row] + j, n) + d * r, n);
    }
  }
  multiply<Real>(M, reading(d_gates), weights.U_gates, reading(d_state), d_state);
}

template <class Real> INLINE void add(Real *to, const Real *what, int64_t count) {
  FOR_LANES(Real, j, n, count) store<Real>(to + j, load<Real>(to + j, n) + load<Real>(what + j, n), n);
}

}  // namespace VARIANT
