// The engine's table for one instruction set.
#pragma once
#include "attention.h"
#include "bytes.h"
#include "table.h"

namespace VARIANT {

inline void table_pack(const float *W, int64_t apart, int64_t K, int64_t N, float *into) {
  Packed<float> packed;
  packed.pack(W, K, N, 1, apart, into);
}

inline void table_multiply(int64_t M, const float *x, int64_t x_apart, const float *panels, int64_t K, int64_t N,
                           const float *base, int64_t base_apart, float *y, int64_t y_apart) {
  Packed<float> packed;
  packed.panels = const_cast<float *>(panels), packed.K = K, packed.N = N;
  multiply<float>(M, {x, x_apart}, packed, {base, base_apart}, {y, y_apart});
}

inline void table_tangent(float *x, int64_t count) {
  FOR_LANES(float, j, n, count) store<float>(x + j, tangent(load<float>(x + j, n)), n);
}

inline void table_rectify(float *x, int64_t count) {
  FOR_LANES(float, j, n, count) store<float>(x + j, larger(load<float>(x + j, n), Vector<float>{}), n);
}

inline void table_swish(float *x, int64_t count) {
  FOR_LANES(float, j, n, count) {
    const Vector<float> v = load<float>(x + j, n);
    store<float>(x + j, v * sigmoid(v), n);
  }
}

// x Phi(x), Phi by erf: Abramowitz and Stegun 7.1.26, whose error is at most 1.5e-7.
inline void table_gelu(float *x, int64_t count) {
  FOR_LANES(float, j, n, count) {
    const Vector<float> v = load<float>(x + j, n), z = larger(v, -v) * 0.707106781f, t = 1.0f / (1.0f + 0.3275911f * z);
    Vector<float> sum = t * 1.061405429f - 1.453152027f;
    sum = sum * t + 1.421413741f;
    sum = sum * t - 0.284496736f;
    sum = sum * t + 0.254829592f;
    const Vector<float> beyond = 0.5f * sum * t * exponential(-z * z);  // Phi(-|x|)
    store<float>(x + j, v * (v < 0.0f ? beyond : 1.0f - beyond), n);
  }
}

// x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
inline void table_gelu_tanh(float *x, int64_t count) {
  FOR_LANES(float, j, n, count) {
    const Vector<float> v = load<float>(x + j, n);
    store<float>(x + j, v * sigmoid(1.595769122f * (v + 0.044715f * v * v * v)), n);
  }
}

inline void table_lstm(int64_t M, int64_t H, float *gates, float *state) {
  for (int64_t row = 0; row < M; row++) {
    const float *i = gates + row * 4 * H, *f = i + H, *o = f + H, *g = o + H;
    float *h = state + row * 2 * H, *c = h + H;
    FOR_LANES(float, j, n, H) {
      Vector<float> kept = load<float>(c + j, n) / (1.0f + exponential(-load<float>(f + j, n)));
      store<float>(c + j, kept + gated(load<float>(i + j, n), load<float>(g + j, n)), n);
    }  // what follows would wait for it
    FOR_LANES(float, j, n, H) store<float>(h + j, gated(load<float>(o + j, n), load<float>(c + j, n)), n);
  }
}

inline void table_gru_reset(int64_t M, int64_t H, float *gates, const float *state, float *reset) {
  for (int64_t row = 0; row < M; row++) {
    float *r = gates + row * 3 * H, *z = r + H;
    FOR_LANES(float, j, n, H) {
      store<float>(z + j, sigmoid(load<float>(z + j, n)), n);
      store<float>(reset + row * H + j, sigmoid(load<float>(r + j, n)) * load<float>(state + row * H + j, n), n);
    }
  }
}

inline void table_gru_mix(int64_t M, int64_t H, float *gates, float *state, bool keeping) {
  for (int64_t row = 0; row < M; row++) {
    const float *z = gates + row * 3 * H + H, *candidate = z + H;
    float *s = state + row * H;
    FOR_LANES(float, j, n, H) {
      Vector<float> fresh = tangent(load<float>(candidate + j, n)), old = load<float>(s + j, n);
      Vector<float> update = load<float>(z + j, n);
      store<float>(s + j, keeping ? fresh + update * (old - fresh) : old + update * (fresh - old), n);
    }
  }
}

inline void table_gru_after(int64_t M, int64_t H, float *gates, const float *inner, float *state) {
  for (int64_t row = 0; row < M; row++) {
    const float *g = gates + row * 3 * H, *u = inner + row * 3 * H;
    float *s = state + row * H;
    FOR_LANES(float, j, n, H) {
      Vector<float> reset = sigmoid(load<float>(g + j, n) + load<float>(u + j, n));
      Vector<float> keep = sigmoid(load<float>(g + H + j, n) + load<float>(u + H + j, n));
      Vector<float> fresh = tangent(load<float>(g + 2 * H + j, n) + reset * load<float>(u + 2 * H + j, n));
      store<float>(s + j, fresh + keep * (load<float>(s + j, n) - fresh), n);
    }
  }
}

inline void table_additive(const float *q, const float *keys, const float *v, int64_t S, int64_t A, float *scores) {
  for (int64_t s = 0; s < S; s++) scores[s] = additive_score(q, keys + s * A, v, A);
}

// Four keys against one query: their sums do not wait for each other.
INLINE void dots4(const float *q, const float *const *keys, int64_t C, float scale, float *scores) {
  Vector<float> totals[4] = {};
  FOR_LANES(float, j, n, C) {
    const Vector<float> x = load<float>(q + j, n);
    UNROLL for (int i = 0; i < 4; i++) totals[i] += x * load<float>(keys[i] + j, n);
  }
  UNROLL for (int i = 0; i < 4; i++) scores[i] = scale * sum<float>(totals[i]);
}

inline void table_dots(const float *q, const float *keys, int64_t apart, int64_t S, int64_t A, float scale,
                       float *scores) {
  int64_t s = 0;
  for (; s + 4 <= S; s += 4) {
    const float *const four[] = {keys + s * apart, keys + (s + 1) * apart, keys + (s + 2) * apart, keys + (s + 3) * apart};
    dots4(q, four, A, scale, scores + s);
  }
  for (; s < S; s++) scores[s] = scale * dot(q, keys + s * apart, A);
}

// share * sum_s weights_s value_s, where `value(s)` is a row of C; four vectors at a time, for the same reason.
template <class Value>
INLINE void brought(const float *weights, Value value, int64_t S, int64_t C, float share, float *out) {
  constexpr int W = Lanes<float>::count;
  int64_t c = 0;
  for (; c + 4 * W <= C; c += 4 * W) {
    Vector<float> totals[4] = {};
    for (int64_t s = 0; s < S; s++) {
      const float *from = value(s) + c;
      UNROLL for (int i = 0; i < 4; i++) totals[i] += weights[s] * load<float>(from + i * W);
    }
    UNROLL for (int i = 0; i < 4; i++) store<float>(out + c + i * W, totals[i] * share);
  }
  for (; c < C; c += W) {
    Vector<float> total = {};
    for (int64_t s = 0; s < S; s++) total += weights[s] * load<float>(value(s) + c, C - c);
    store<float>(out + c, total * share, C - c);
  }
}

// Zero where not allowed, or where the score is -inf; all zero where nothing else is.
inline void table_softmax(float *scores, const uint8_t *allowed, int64_t S) {
  float top = -INFINITY;
  for (int64_t s = 0; s < S; s++)
    if (allowed[s] && scores[s] > top) top = scores[s];
  float total = 0;
  for (int64_t s = 0; s < S; s++) scores[s] = allowed[s] && scores[s] > -INFINITY ? scores[s] - top : -INFINITY;
  FOR_LANES(float, s, n, S) {
    Vector<float> e = load<float>(scores + s, n);
    store<float>(scores + s, e > -INFINITY ? exponential(e) : Vector<float>{}, n);
  }
  for (int64_t s = 0; s < S; s++) total += scores[s];
  if (total > 0)
    for (int64_t s = 0; s < S; s++) scores[s] /= total;
}

inline void table_bring(const float *weights, const float *values, int64_t apart, int64_t S, int64_t C, float *context) {
  brought(weights, [&](int64_t s) { return values + s * apart; }, S, C, 1.0f, context);
}

// One word looks at `count` of them in each of `heads`: keys and values, `apart` from each other, lie anywhere.
inline void table_look(const float *q, const float *const *kept, int64_t count, int64_t heads, int64_t C, int64_t apart,
                       float scale, float *scores, float *out, float *weights) {
  for (int64_t n = 0; n < heads; n++) {
    const int64_t first = n * C;
    float top = -INFINITY;
    int64_t s = 0;
    for (; s + 4 <= count; s += 4) {
      const float *const four[] = {kept[s] + first, kept[s + 1] + first, kept[s + 2] + first, kept[s + 3] + first};
      dots4(q + first, four, C, scale, scores + s);
    }
    for (; s < count; s++) scores[s] = scale * dot(q + first, kept[s] + first, C);
    for (s = 0; s < count; s++) top = scores[s] > top ? scores[s] : top;
    Vector<float> sums = {};
    FOR_LANES(float, s, left, count) {
      Vector<float> e = exponential(load<float>(scores + s, left) - top);
      if (left < Lanes<float>::count)
        for (int64_t i = left; i < Lanes<float>::count; i++) e[i] = 0;
      sums += e;
      store<float>(scores + s, e, left);
    }
    const float share = 1 / sum<float>(sums);
    brought(scores, [&](int64_t s) { return kept[s] + apart + first; }, count, C, share, out + first);
    if (!weights) continue;
    FOR_LANES(float, s, left, count) store<float>(weights + n * count + s, load<float>(scores + s, left) * share, left);
  }
}

inline void table_add(float *x, const float *y, int64_t count) {
  FOR_LANES(float, j, n, count) store<float>(x + j, load<float>(x + j, n) + load<float>(y + j, n), n);
}

inline void table_norm(const float *x, const float *gain, const float *bias, int64_t D, float *y) {
  Vector<float> total = {};
  FOR_LANES(float, j, n, D) total += load<float>(x + j, n);
  const float mean = sum<float>(total) / static_cast<float>(D);
  Vector<float> squares = {};
  FOR_LANES(float, j, n, D) {
    Vector<float> far = load<float>(x + j, n) - mean;
    if (n < Lanes<float>::count)
      for (int64_t i = n; i < Lanes<float>::count; i++) far[i] = 0;
    squares += far * far;
  }
  const float scale = 1 / std::sqrt(sum<float>(squares) / static_cast<float>(D) + 1e-5f);
  FOR_LANES(float, j, n, D)
  store<float>(y + j, (load<float>(x + j, n) - mean) * scale * load<float>(gain + j, n) + load<float>(bias + j, n), n);
}

inline float table_highest(const float *x, int64_t count) {
  Vector<float> top = all<float>(-INFINITY);
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) top = larger(top, load<float>(x + j));
  float found = largest<float>(top);
  for (; j < count; j++) found = x[j] > found ? x[j] : found;
  return found;
}

inline int64_t table_place(const float *x, int64_t count, float value) {
  constexpr int64_t far = 64;
  int64_t j = 0;
  for (; j + far <= count; j += far) {
    Integers there = {};
    UNROLL for (int i = 0; i < 8; i++) there |= load<float>(x + j + i * 8) == value;
    int32_t any = 0;
    UNROLL for (int i = 0; i < 8; i++) any |= there[i];
    if (any) break;
  }
  for (; j < count; j++)
    if (x[j] == value) return j;
  return 0;
}

inline float table_log_sum_exp(const float *x, int64_t count) {
  const float top = table_highest(x, count);
  Four totals = {};
  int64_t j = 0;
  for (; j + 32 <= count; j += 32) totals = totals + exponential(four(x + j) - top);
  Vector<float> total = (totals.v[0] + totals.v[1]) + (totals.v[2] + totals.v[3]);
  for (; j + 8 <= count; j += 8) total += exponential(load<float>(x + j) - top);
  float rest = 0;
  for (; j < count; j++) rest += exponential(all<float>(x[j] - top))[0];
  return top + std::log(sum<float>(total) + rest);
}

#define TABLE                                                                                                  \
  {                                                                                                            \
    VARIANT::panel_width<float>(), VARIANT::table_pack, VARIANT::table_multiply, VARIANT::pack_bytes,          \
        VARIANT::multiply_bytes, VARIANT::table_tangent,                                                       \
        {VARIANT::table_rectify, VARIANT::table_swish, VARIANT::table_gelu, VARIANT::table_gelu_tanh},         \
        VARIANT::table_lstm, VARIANT::table_gru_reset, VARIANT::table_gru_mix,                                 \
        VARIANT::table_gru_after, VARIANT::table_additive, VARIANT::table_dots, VARIANT::table_softmax,        \
        VARIANT::table_bring, VARIANT::table_look, VARIANT::table_add, VARIANT::table_norm,         \
        VARIANT::table_log_sum_exp, VARIANT::table_highest, VARIANT::table_place                               \
  }

}  // namespace VARIANT
