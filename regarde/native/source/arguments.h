// What each kernel is given: sizes, then pointers, in the order in which library.py names them. Reals are of the type
// the kernel's name ends with; a null pointer stands for what is not there. All tensors are contiguous.
//
// Axes: B batch, T steps, S source, H hidden, G gate pre-activations, A alignment size, C context, L layers, V words.
#pragma once
#include <cstdint>

enum Kind : int64_t { SIMPLE, GRU, LSTM };

// One cell over a whole sentence (recurrent.h).
struct Recurrent {
  int64_t B, T, H, kind, backwards, threads;
  const uint8_t *mask;             // (B, T) 1 = a token; null: all are
  const void *U_gates, *U;         // GRU: (2H, H), (H, H); others: null, (G, H)
  const void *shares;              // (B, T, G)
  const void *start, *start_carry; // (B, H); the carry is an LSTM's c
  void *outputs, *carry;           // (B, T, H)
  void *gates;                     // (B, T, G) activations
  void *reset;                     // (B, T, H) of a GRU: r o s
  const void *d_outputs;           // (B, T, H)
  void *d_state, *d_carry;         // (B, H) of the last state on entry, of the first on return
  void *d_gates;                   // (B, T, G) also those of the shares
};

// A cell over a whole sentence that multiplies its inputs too (layer.h). Steps come first, so that those of a batch lie
// together; x_t and h_{t-1} are one row, which one matrix multiplies.
struct Layer {
  int64_t B, T, I, H, kind, threads;  // a simple cell or an LSTM
  const uint8_t *mask;                // (T, B), or null
  const void *WU, *b;                 // (G, I + H), (G)
  const void *start_carry;            // (B, H)
  void *joined;                       // (T, B, I + H): x, and h before the first step, on entry
  void *outputs, *carry;              // (T, B, H)
  void *gates;                        // (T, B, G) activations
  const void *d_outputs;              // (T, B, H)
  void *d_state, *d_carry;            // (B, H) as above
  void *d_joined;                     // (T, B, I + H) those of x first; null: only h needs them
  void *d_gates;                      // (T, B, G)
};

// The additive score of all queries against all keys (attention.h).
struct Additive {
  int64_t B, T, S, A, threads;
  const void *queries, *keys, *v;  // (B, T, A), (B, S, A), (A)
  void *scores;                    // (B, T, S)
  const void *d_scores;            // (B, T, S)
  void *d_queries, *d_keys, *d_v;  // (B, T, A), (B, S, A), (threads, A): the last to be summed
};

// A language model that looks at its own last states (window.h).
struct Window {
  int64_t B, T, S, A, C, window, threads;  // S: the T states and those before them
  const void *queries, *keys, *values, *v;  // (B, T, A), (B, S, A), (B, S, C), (A); no v: a dot product
  void *weights, *contexts;                 // (B, T, window), (B, T, C)
  const void *d_contexts;                   // (B, T, C)
  void *d_queries, *d_keys, *d_values;      // the last two are added to
  void *d_v;                                // (threads, A): to be summed
};

// The backward messages of a conditional random field (field.h).
struct Field {
  int64_t B, S, V, first, end, threads;  // tags are `first` and above; the column `end` of A ends a tagging
  const int64_t *lengths;                // (B) words
  const void *P, *A;                     // (B, S, V), (V, V)
  void *beta;                            // (B, S, V)
  void *d_beta, *d_P;                    // (B, S, V): the first is overwritten, the second zero on entry
  void *d_A;                             // (threads, V, V): zero on entry, to be summed
};

// A decoder that attends before each step of its cell (before.h).
struct Before {
  int64_t B, T, S, H, A, C, kind, threads;
  const uint8_t *mask;             // (B, S)
  const void *U_gates, *U;         // of the cell, as above
  const void *W_context;           // (G, C)
  const void *W_query, *b_query;   // (A, H), (A); null: the state itself is the query
  const void *v;                   // (A); null: the score is a dot product
  const void *keys, *values;       // (B, S, A), (B, S, C)
  const void *shares;              // (B, T, G)
  const void *start, *start_carry; // (B, H)
  void *outputs, *carry, *gates, *reset;
  void *queries, *weights, *contexts;           // (B, T, A), (B, T, S), (B, T, C)
  const void *d_outputs, *d_contexts, *d_weights;
  void *d_state, *d_carry, *d_gates, *d_queries, *d_scores;
  void *d_all_contexts;            // (B, T, C) all that reaches the contexts
  void *d_keys, *d_v;              // of the additive score: (B, S, A), (threads, A)
};

// A decoder that attends after each step of its stack and feeds what it found into the next (after.h).
struct After {
  int64_t B, T, S, H, A, C, L, kind, residual_from, threads;
  const uint8_t *mask;             // (B, S)
  const void *W_feed;              // (G, H)
  const void *W_query, *b_query, *v;
  const void *W_combine;           // (H, C + H)
  const void *keys, *values;
  const void *shares;              // (B, T, G) of the first layer
  const void *feed;                // (B, H) before the first step
  const void *const *U_gates, *const *U;        // L of each
  const void *const *W_below, *const *b_below;  // of the layers above the first: (G, H), (G)
  const void *const *noise;        // of the same layers: (B, T, H), or null
  const void *const *start, *const *start_carry;
  void *const *outputs, *const *carry, *const *gates, *const *reset;
  void *const *below;              // (B, T, H) what entered each layer above the first
  void *top;                       // (B, T, H) what the stack shows
  void *queries, *weights, *contexts, *attentional;  // the last (B, T, H)
  const void *d_attentional, *d_weights;
  void *const *d_state, *const *d_carry, *const *d_gates;
  void *d_feed;                    // (B, H)
  void *d_combined;                // (B, T, H) before the tanh
  void *d_queries, *d_scores, *d_contexts, *d_keys, *d_v;
};

// Attention in several heads (heads.h). How far sentences, tokens and heads lie apart is said of each tensor; the size
// of a head is contiguous.
struct Heads {
  int64_t B, T, S, N, C, causal, threads;
  int64_t queries_apart[3], keys_apart[3], values_apart[3], contexts_apart[3];
  int64_t d_queries_apart[3], d_keys_apart[3], d_values_apart[3];
  double scale;
  const uint8_t *mask;                  // (B, S), or null
  const void *queries, *keys, *values;  // (B, T, N, C), (B, S, N, C) twice
  void *contexts;                       // (B, T, N, C)
  const void *d_contexts;               // apart as the contexts
  void *d_queries, *d_keys, *d_values;
};

// Softmax cross-entropy in place: the logits become their own gradients (loss.h).
struct CrossEntropy {
  int64_t rows, V, ignored, threads;
  double smoothing, scale;         // the gradient is that of scale * loss
  void *logits;                    // (rows, V)
  const int64_t *targets;          // (rows)
  double *losses;                  // (rows) before scaling
};

// y = x where a coin falls so, scaled; 0 elsewhere (dropout.h).
struct Dropout {
  int64_t count, seed, threads;
  double probability;
  const void *x;
  void *y;
};
