// Attention to the source, as regarde/attention has it: score x mechanism x normalizer, one head or several.
#pragma once
#include <algorithm>
#include <memory>

#include "parts.h"

namespace engine {

// The scores of attention/scores.py: keys once per sentence, then a query against them.
struct Score {
  enum Kind { products, additive, location, gaussian } kind = products;
  const Table *table = nullptr;
  Linear of_query, of_states;  // empty: as it is
  Floats v;
  float scale = 1;
  int64_t width = 0;  // of the keys

  Score() = default;
  // Queries of size Q, states of size D; parameters under `name`, settings under `path`.
  Score(const Folder &folder, const string &name, const string &path, int64_t Q, int64_t D) : table(folder.table) {
    const string chosen = folder.word(path + ".kind");
    width = D;
    if (chosen == "scaled-dot") {
      scale = 1 / std::sqrt(static_cast<float>(Q));
    } else if (chosen == "general") {
      of_states = Linear(folder, name + ".W", D, Q);
      width = Q;
    } else if (chosen == "additive" || chosen == "normed-additive") {
      kind = additive;
      of_query = Linear(folder, name + ".W", Q, -1, chosen == "normed-additive");
      width = of_query.N;
      of_states = Linear(folder, name + ".U", D, width);
      if (chosen == "additive") take_v(folder, name + ".v");
      else normed_v(folder, name);
    } else if (chosen == "concat") {
      kind = additive;
      const bool identity = folder.yes(path + ".identity");
      const Matrix W = folder.matrix(name + ".W.weight", identity ? D : -1, identity ? Q : Q + D);
      of_query.load(folder, W, 0, Q);
      if (!identity) of_states.load(folder, W, Q, D);
      width = W.rows;
      take_v(folder, name + ".v");
    } else if (chosen == "location") {
      kind = location;
      of_query = Linear(folder, name + ".W", Q, -1);
      width = 0;
    } else if (chosen == "gaussian") {
      kind = gaussian;
      double bandwidth = folder.real(path + ".width");
      if (folder.yes(path + ".learned")) bandwidth *= std::exp(folder.scalar(name + ".log_w"));
      if (Q != D) throw Unknown("a distance between other sizes");
      scale = static_cast<float>(-1 / (2 * bandwidth * bandwidth));
    } else if (chosen != "dot") {
      throw Unknown("a score of kind " + chosen);
    }
    if (kind == additive) folder.agree(path + ".size", width);
    if (kind == location) folder.agree(path + ".length", of_query.N);
    if (kind == products && width != Q) throw Unknown("a product of other sizes");
  }
  void take_v(const Folder &folder, const string &name) {
    v = folder.vector(name, width);
  }
  void normed_v(const Folder &folder, const string &name) {
    take_v(folder, name + ".direction");
    double squares = 0;
    for (float x : v) squares += static_cast<double>(x) * x;
    const float length = folder.scalar(name + ".g") / static_cast<float>(std::sqrt(squares));
    for (float &x : v) x *= length;
  }
  void keys(int64_t S, const float *states, int64_t D, float *out) const {
    if (of_states) return of_states(S, states, D, out, width);
    if (width) std::memcpy(out, states, sizeof(float) * S * D);
  }
  // (S) for a query that has been through `of_query`
  void operator()(const float *q, const float *keys, int64_t S, float *scores) const {
    if (kind == products) return table->dots(q, keys, width, S, width, scale, scores);
    if (kind == additive) return table->additive(q, keys, v.data(), S, width, scores);
    if (kind == location) {
      for (int64_t s = 0; s < S; s++) scores[s] = s < of_query.N ? q[s] : -INFINITY;
      return;
    }
    for (int64_t s = 0; s < S; s++) {
      float squares = 0;
      for (int64_t j = 0; j < width; j++) squares += (q[j] - keys[s * width + j]) * (q[j] - keys[s * width + j]);
      scores[s] = scale * squares;
    }
  }
};

inline int64_t last_of(const std::vector<uint8_t> &mask) {
  int64_t last = 0;
  for (int64_t s = 0; s < static_cast<int64_t>(mask.size()); s++)
    if (mask[s]) last = s;
  return last;
}

inline float length(const float *x, int64_t count) {
  double squares = 0;
  for (int64_t j = 0; j < count; j++) squares += static_cast<double>(x[j]) * x[j];
  return static_cast<float>(std::sqrt(squares));
}

// Martins & Astudillo 2016, algorithm 1.
inline void sparsemax(float *scores, const uint8_t *allowed, int64_t S) {
  std::vector<float> open;
  for (int64_t s = 0; s < S; s++)
    if (allowed[s] && scores[s] > -INFINITY) open.push_back(scores[s]);
  std::sort(open.rbegin(), open.rend());
  float sum = 0, tau = 0;
  for (size_t k = 0; k < open.size(); k++) {
    sum += open[k] - open[0];
    const float count = static_cast<float>(k + 1);
    if (1 + count * (open[k] - open[0]) > sum) tau = (sum - 1) / count;
  }
  for (int64_t s = 0; s < S; s++)
    scores[s] = allowed[s] && scores[s] > -INFINITY ? std::max(scores[s] - open[0] - tau, 0.0f) : 0.0f;
}

// Every attention of regarde/attention, by its settings.
struct Attention {
  enum Kind { global, local_m, local_p, coverage, monotonic } kind = global;
  const Table *table = nullptr;
  Score score;
  int64_t Q = 0, D = 0, N = 1, width = 0;  // width: of the context
  bool attend_eos = true, sparse = false, several = false;
  int64_t window = 0;
  Linear W_p, W_q, W_kv, W_o;
  Floats v_p, w;
  float start = 0;

  Attention() = default;
  Attention(const Folder &folder, const string &name, const string &path, int64_t Q_, int64_t D_, int64_t heads)
      : table(folder.table), Q(Q_), D(D_), width(D_) {
    const string chosen = folder.word(path + ".kind");
    attend_eos = folder.yes(path + ".attend_eos");
    if (folder.settings.count(path + ".normalizer"))  // hard attention has none
      sparse = folder.choice(path + ".normalizer", {"softmax", "sparsemax"}) == "sparsemax";
    if (chosen == "multi-head") {
      several = true;
      N = folder.number(path + ".heads", heads);
      if (N < 1 || D % N) throw Unknown("so many heads");
      score = Score(folder, name + ".score", path + ".score", D / N, D / N);
      const bool biased = folder.yes(path + ".bias");
      W_q = Linear(folder, name + ".W_q", Q, D, biased), W_o = Linear(folder, name + ".W_o", D, D, biased);
      W_kv = Linear(folder, name + ".W_kv", D, score.kind == Score::location ? D : 2 * D, biased);
      return;
    }
    score = Score(folder, name + ".score", path + ".score", Q, D);
    if (chosen == "local-m" || chosen == "local-p") {
      kind = chosen == "local-m" ? local_m : local_p;
      window = folder.number(path + ".window");
      if (kind == local_p) {
        W_p = Linear(folder, name + ".W_p", Q, Q);
        v_p = folder.vector(name + ".v_p", Q);
      }
    } else if (chosen == "coverage") {
      kind = coverage;
      w = folder.vector(name + ".w", score.width);
    } else if (chosen == "monotonic") {
      kind = monotonic;
      start = static_cast<float>(folder.real(path + ".start")) + folder.scalar(name + ".r");
    } else if (chosen != "global") {
      throw Unknown("an attention of kind " + chosen);
    }
  }

  // Contexts are of other vectors than what is compared, of this size.
  void bring_others(int64_t size) {
    if (several && size != D) throw Unknown("several heads over vectors of another size");
    width = size;
  }

  // Remember states (S, D), and values (S, width) where they are not the states.
  void remember(int64_t S, const float *states, Memory &memory, const float *values = nullptr) const {
    memory.mask.assign(S, 1);
    if (!attend_eos && S > 1) memory.mask[S - 1] = 0;
    memory.width = width / N;
    if (!values) values = states;
    if (!several) {
      memory.keys.resize(S * score.width);
      score.keys(S, states, D, memory.keys.data());
      memory.values.assign(values, values + S * width);
      return;
    }
    const int64_t C = D / N, both = W_kv.N, brought = both - D;  // a score that looks at no keys has none
    Floats projected(S * both), others, one(S * C);
    W_kv(S, states, D, projected.data(), both);
    if (values != states) W_kv(S, values, D, (others.resize(S * both), others.data()), both);
    const float *from = others.empty() ? projected.data() : others.data();
    memory.keys.resize(N * S * score.width);
    memory.values.resize(N * S * C);
    for (int64_t n = 0; n < N; n++) {
      for (int64_t s = 0; s < S; s++) {
        if (brought) std::memcpy(&one[s * C], &projected[s * both + n * C], sizeof(float) * C);
        std::memcpy(&memory.values[(n * S + s) * C], from + s * both + brought + n * C, sizeof(float) * C);
      }
      score.keys(S, one.data(), C, memory.keys.data() + n * S * score.width);
    }
  }

  // queries (M, Q) -> contexts (M, width); the weights go where each row keeps those of its layer. `open`: where each row
  // may look, if not everywhere.
  void attend(const Model &model, const std::vector<Row> &rows, int64_t layer, const float *queries, int64_t apart,
              float *contexts, int64_t contexts_apart, const std::vector<std::vector<uint8_t>> *open = nullptr) const {
    const int64_t M = static_cast<int64_t>(rows.size());
    static thread_local Floats asked, projected, found, placed;
    const float *q = queries;
    int64_t q_apart = apart;
    if (several) {
      W_q(M, queries, apart, (projected.resize(M * D), projected.data()), D);
      q = projected.data(), q_apart = D / N;  // (M N, D / N)
    }
    if (score.of_query) {
      score.of_query(M * N, q, q_apart, (asked.resize(M * N * score.of_query.N), asked.data()), score.of_query.N);
      q = asked.data(), q_apart = score.of_query.N;
    }
    if (kind == local_p) {
      placed.resize(M * Q);
      W_p(M, queries, apart, placed.data(), Q);
      table->tangent(placed.data(), M * Q);
    }
    if (several) found.resize(M * D);
    for (int64_t i = 0; i < M; i++) {
      const Row &row = rows[i];
      const Memory &memory = row.sentence->memory[layer];
      const int64_t S = row.sentence->S(), C = memory.width;
      float *weights = model.weights(row, row.t, row.slot, layer), *energies = model.energies(row, layer);
      for (int64_t n = 0; n < N; n++) {
        const float *keys = memory.keys.data() + n * S * score.width;
        weigh(model, row, layer, n, q + (i * N + n) * q_apart, kind == local_p ? &placed[i * Q] : nullptr, keys, memory,
              weights + n * S, energies ? energies + n * S : nullptr, open ? (*open)[i] : memory.mask);
        if (const Interventions *told = row.sentence->interventions)
          told->pin(row.t, layer, n, memory.mask, weights + n * S);
        float *to = several ? &found[i * D + n * C] : contexts + i * contexts_apart;
        table->bring(weights + n * S, memory.values.data() + n * S * C, C, S, C, to);
      }
    }
    if (several) W_o(M, found.data(), D, contexts, contexts_apart);
    for (int64_t i = 0; i < M; i++)
      if (rows[i].sentence->watched)
        rows[i].sentence->norms[rows[i].slot * model.layers + layer] = length(contexts + i * contexts_apart, width);
  }

 private:
  void weigh(const Model &model, const Row &row, int64_t layer, int64_t head, const float *q, const float *place,
             const float *keys, const Memory &memory, float *weights, float *energies,
             const std::vector<uint8_t> &open) const {
    const int64_t S = static_cast<int64_t>(memory.mask.size());
    static thread_local Floats changed;
    static thread_local std::vector<uint8_t> allowed;
    allowed = open;
    if (kind == coverage) {
      changed.assign(keys, keys + S * score.width);
      for (int64_t step = 0; step < row.t; step++) {
        const float *before = model.weights(row, step, row.path[step], layer);
        for (int64_t s = 0; s < S; s++)
          for (int64_t j = 0; j < score.width; j++) changed[s * score.width + j] += before[s] * w[j];
      }
      keys = changed.data();
    }
    score(q, keys, S, weights);
    if (energies)  // as Attention.energies in regarde/attention has them
      for (int64_t s = 0; s < S; s++) energies[s] = weights[s] + (kind == monotonic ? start : 0.0f);
    if (row.sentence->interventions) row.sentence->interventions->mask(layer, head, S, weights);
    if (kind == monotonic) return stop(model, row, layer, memory, weights);
    float p = 0;
    if (kind == local_m) p = static_cast<float>(std::min(row.t, last_of(memory.mask)));
    if (kind == local_p) {
      float inner = 0;
      int64_t tokens = 0;
      for (int64_t j = 0; j < Q; j++) inner += place[j] * v_p[j];
      for (uint8_t is_token : memory.mask) tokens += is_token;
      p = std::min(static_cast<float>(tokens) / (1 + std::exp(-inner)), static_cast<float>(last_of(memory.mask)));
    }
    if (window)
      for (int64_t s = 0; s < S; s++) allowed[s] &= std::fabs(static_cast<float>(s) - p) <= static_cast<float>(window);
    if (sparse) sparsemax(weights, allowed.data(), S);
    else table->softmax(weights, allowed.data(), S);
    if (kind == local_p) {
      const float sigma = static_cast<float>(window) / 2;
      for (int64_t s = 0; s < S; s++) {
        const float distance = static_cast<float>(s) - p;
        weights[s] *= std::exp(-distance * distance / (2 * sigma * sigma));
      }
    }
  }

  // Raffel et al. 2017, algorithm 1: on from the last stop, the first place that says so.
  void stop(const Model &model, const Row &row, int64_t layer, const Memory &memory, float *weights) const {
    const int64_t S = static_cast<int64_t>(memory.mask.size());
    int64_t from = 0, chosen = -1;
    for (int64_t step = 0; step < row.t; step++) {
      const float *before = model.weights(row, step, row.path[step], layer);
      for (int64_t s = 0; s < S; s++)
        if (before[s] > 0) from = std::max(from, s);
    }
    for (int64_t s = from; s < S && chosen < 0; s++)
      if (memory.mask[s] && weights[s] > -INFINITY && weights[s] + start >= 0) chosen = s;
    for (int64_t s = 0; s < S; s++) weights[s] = s == chosen ? 1.0f : 0.0f;
  }
};

}  // namespace engine
