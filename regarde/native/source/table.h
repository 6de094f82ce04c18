// What the engine asks of an instruction set: a table of functions, one table for each.
#pragma once
#include <cstdint>

// How a row was made bytes (bytes.h).
struct Bytes {
  float low, step;
};

enum Activation : int { RELU, SWISH, GELU, GELU_TANH, ACTIVATIONS };  // of layers/blocks.py; and how many there are

struct Table {
  int64_t panel;  // columns of a packed panel
  void (*pack)(const float *W, int64_t apart, int64_t K, int64_t N, float *into);  // W (N, K), rows `apart`
  // y (M, N) = base + x (M, K) W^T; base: null, one row (apart = 0), or y itself
  void (*multiply)(int64_t M, const float *x, int64_t x_apart, const float *panels, int64_t K, int64_t N,
                   const float *base, int64_t base_apart, float *y, int64_t y_apart);
  // the same in bytes (bytes.h); room (M, K to the next multiple of 4), made (M)
  int64_t (*pack_bytes)(const int8_t *W, int64_t apart, int64_t K, int64_t N, int8_t *panels, int32_t *sums);  // levels
  void (*multiply_bytes)(int64_t M, const float *x, int64_t x_apart, const int8_t *panels, int64_t levels,
                         const float *scales, const int32_t *sums, int64_t K, int64_t N, const float *base,
                         int64_t base_apart, float *y, int64_t y_apart, uint8_t *room, Bytes *made);
  void (*tangent)(float *x, int64_t count);
  void (*activate[ACTIVATIONS])(float *x, int64_t count);  // by Activation
  void (*lstm)(int64_t M, int64_t H, float *gates, float *state);                         // (M, 4H), (M, 2H)
  void (*gru_reset)(int64_t M, int64_t H, float *gates, const float *state, float *reset);
  void (*gru_mix)(int64_t M, int64_t H, float *gates, float *state, bool keeping);        // keeping: z o s + (1 - z) o s~
  void (*gru_after)(int64_t M, int64_t H, float *gates, const float *inner, float *state);  // r after the product
  void (*additive)(const float *q, const float *keys, const float *v, int64_t S, int64_t A, float *scores);
  void (*dots)(const float *q, const float *keys, int64_t apart, int64_t S, int64_t A, float scale, float *scores);
  void (*softmax)(float *scores, const uint8_t *allowed, int64_t S);
  void (*bring)(const float *weights, const float *values, int64_t apart, int64_t S, int64_t C, float *context);
  // one word against `count` others in all heads; values lie `apart` from their keys; scores (count) are scratch;
  // weights: null, or where they go (heads, count)
  void (*look)(const float *q, const float *const *kept, int64_t count, int64_t heads, int64_t C, int64_t apart,
               float scale, float *scores, float *out, float *weights);
  void (*add)(float *x, const float *y, int64_t count);
  void (*norm)(const float *x, const float *gain, const float *bias, int64_t D, float *y);
  float (*log_sum_exp)(const float *x, int64_t count);
  float (*highest)(const float *x, int64_t count);
  int64_t (*place)(const float *x, int64_t count, float value);  // the first that is so much; 0 where none is
};

extern const Table portable_table;
#if defined(__x86_64__)
extern const Table avx2_table;
#endif
