// The recurrent models: models/sutskever.py, cho.py, bahdanau.py, conditional.py, luong.py, gnmt.py.
#pragma once
#include "attending.h"

namespace engine {

using Sentences = std::vector<Sentence *>;

// The tokens of several sentences end to end, and what stands at each.
struct Tokens {
  std::vector<int64_t> starts, lengths, by_length;  // by_length: sentences, longest first
  int64_t total = 0;

  explicit Tokens(const Sentences &sentences) {
    for (const Sentence *sentence : sentences) {
      starts.push_back(total), lengths.push_back(sentence->S());
      total += sentence->S();
      by_length.push_back(static_cast<int64_t>(by_length.size()));
    }
    std::stable_sort(by_length.begin(), by_length.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  }
};

enum Reading { forwards, backwards, reversed };  // reversed: words back to front, EOS still last

// A cell over whole sentences. shares (total, G) -> outputs (total, H) `apart`; finals (sentences, K).
inline void run(const Cell &cell, const Tokens &tokens, const Floats &shares, Reading reading, float *outputs,
                int64_t apart, float *finals) {
  const int64_t B = static_cast<int64_t>(tokens.starts.size()), longest = B ? tokens.lengths[tokens.by_length[0]] : 0;
  Floats gates(B * cell.G), states(B * cell.K, 0.0f);
  for (int64_t k = 0, M = B; k < longest; k++) {
    while (tokens.lengths[tokens.by_length[M - 1]] <= k) M--;
    auto place = [&](int64_t row) {
      const int64_t b = tokens.by_length[row], S = tokens.lengths[b];
      const int64_t at = reading == forwards || (reading == reversed && k == S - 1) ? k : reading == backwards ? S - 1 - k : S - 2 - k;
      return tokens.starts[b] + at;
    };
    for (int64_t row = 0; row < M; row++)
      std::memcpy(&gates[row * cell.G], &shares[place(row) * cell.G], sizeof(float) * cell.G);
    cell.step(M, gates.data(), states.data());
    for (int64_t row = 0; row < M; row++)
      std::memcpy(outputs + place(row) * apart, &states[row * cell.K], sizeof(float) * cell.H);
  }
  for (int64_t row = 0; row < B; row++)
    std::memcpy(finals + tokens.by_length[row] * cell.K, &states[row * cell.K], sizeof(float) * cell.K);
}

// What the source has become: states (total, D), and of each layer the last state.
struct Encoded {
  Tokens tokens;
  Floats states;
  int64_t D = 0;
  std::vector<Floats> finals;  // of each layer: (sentences, width)
  int64_t final_width = 0;
  explicit Encoded(const Sentences &sentences) : tokens(sentences) {}
};

struct Stack {
  std::vector<Cell> cells;
  int64_t residual_from = 0;
  Stack() = default;
  // `inputs` of the first layer; `context`, if any, is the size of what enters every layer above it.
  Stack(const Folder &folder, const string &name, const string &kind, int64_t residual, std::vector<int64_t> inputs,
        int64_t context = 0) {
    do {
      cells.emplace_back(folder, name + "." + std::to_string(cells.size()), kind, inputs);
      if (cells.back().H != cells[0].H) throw Unknown("layers of different sizes");
      inputs = context ? std::vector<int64_t>{cells[0].H, context} : std::vector<int64_t>{cells[0].H};
    } while (folder.has(name + "." + std::to_string(cells.size()) + ".U.weight"));
    residual_from = residual ? residual : static_cast<int64_t>(cells.size()) + 1;
    if (residual && (residual < 2 || residual > depth())) throw Unknown("a residual connection there");
  }
  int64_t H() const { return cells[0].H; }
  int64_t K() const { return cells[0].K; }
  int64_t depth() const { return static_cast<int64_t>(cells.size()); }
  int64_t width() const { return depth() * K(); }
};

struct RecurrentEncoder {
  string kind;
  Embedding embedding;
  Stack stack;
  std::vector<Cell> ahead, back;
  int64_t residual_from = 0, D = 0, final_width = 0, layers = 0;
  bool reverse = false;

  RecurrentEncoder() = default;
  RecurrentEncoder(const Folder &folder, const string &cell) : embedding(folder, "encoder.embedding") {
    kind = folder.word("model.encoder.kind", "unidirectional");
    const int64_t residual = folder.number("model.encoder.residual_from", folder.number("model.residual_from", 0));
    if (kind == "unidirectional") {
      reverse = folder.settings.count("model.encoder.reverse") && folder.yes("model.encoder.reverse");
      stack = Stack(folder, "encoder.stack.layers", cell, residual, {embedding.size});
      D = stack.H(), final_width = stack.K(), layers = stack.depth();
    } else if (kind == "bidirectional") {
      do {
        both(folder, "encoder.layers." + std::to_string(ahead.size()), cell, ahead.empty() ? embedding.size : D);
        if (ahead.back().H != ahead[0].H) throw Unknown("layers of different sizes");
        D = 2 * ahead[0].H;
      } while (folder.has("encoder.layers." + std::to_string(ahead.size()) + ".forwards.U.weight"));
      residual_from = residual ? residual : static_cast<int64_t>(ahead.size()) + 1;
      if (residual && (residual < 2 || residual > static_cast<int64_t>(ahead.size())))
        throw Unknown("a residual connection there");
      final_width = 2 * ahead[0].K, layers = static_cast<int64_t>(ahead.size());
    } else if (kind == "bottom-bidirectional") {
      both(folder, "encoder.bottom", cell, embedding.size);
      if (residual == 1) throw Unknown("a residual connection there");
      stack = Stack(folder, "encoder.stack.layers", cell, residual ? residual - 1 : 0, {2 * ahead[0].H});
      if (stack.K() != ahead[0].K) throw Unknown("layers of different sizes");
      D = stack.H(), final_width = stack.K(), layers = 1 + stack.depth();
    } else {
      throw Unknown("an encoder of kind " + kind);
    }
    folder.agree("model.embedding", embedding.size);
    if (!folder.settings.count("model.encoder.kind")) return;  // of a model that has no other
    folder.agree("model.encoder.hidden", (ahead.empty() ? stack.cells : ahead)[0].H, folder.number("model.hidden"));
    folder.agree("model.encoder.layers", layers, folder.number("model.layers", 1));
  }
  void both(const Folder &folder, const string &name, const string &cell, int64_t input) {
    ahead.emplace_back(folder, name + ".forwards", cell, std::vector<int64_t>{input});
    back.emplace_back(folder, name + ".backwards", cell, std::vector<int64_t>{input});
    if (back.back().H != ahead.back().H) throw Unknown("directions of different sizes");
  }

  void operator()(const Sentences &sentences, Encoded &out) const {
    const Tokens &tokens = out.tokens;
    const int64_t B = static_cast<int64_t>(sentences.size());
    Floats x(tokens.total * embedding.size), shares;
    for (int64_t b = 0; b < B; b++)
      for (int64_t s = 0; s < tokens.lengths[b]; s++)
        std::memcpy(&x[(tokens.starts[b] + s) * embedding.size], embedding[sentences[b]->ids[s]],
                    sizeof(float) * embedding.size);
    for (size_t i = 0; i < ahead.size(); i++) {
      const int64_t H = ahead[i].H, K = ahead[i].K;
      Floats y(tokens.total * 2 * H), first(B * K), last(B * K), joined(B * 2 * K);
      ahead[i].W[0](tokens.total, x, shares);
      run(ahead[i], tokens, shares, forwards, y.data(), 2 * H, first.data());
      back[i].W[0](tokens.total, x, shares);
      run(back[i], tokens, shares, backwards, y.data() + H, 2 * H, last.data());
      for (int64_t b = 0; b < B; b++) {
        std::memcpy(&joined[b * 2 * K], &first[b * K], sizeof(float) * K);
        std::memcpy(&joined[b * 2 * K + K], &last[b * K], sizeof(float) * K);
      }
      if (kind == "bidirectional" && static_cast<int64_t>(i) + 1 >= residual_from)
        for (size_t j = 0; j < y.size(); j++) y[j] += x[j];
      x.swap(y);
      out.D = 2 * H;
      out.final_width = kind == "bidirectional" ? 2 * K : K;
      out.finals.push_back(kind == "bidirectional" ? joined : last);
    }
    for (int64_t layer = 0; kind != "bidirectional" && layer < stack.depth(); layer++) {
      const Cell &cell = stack.cells[layer];
      Floats y(tokens.total * cell.H), final(B * cell.K);
      cell.W[0](tokens.total, x, shares);
      run(cell, tokens, shares, reverse ? reversed : forwards, y.data(), cell.H, final.data());
      if (layer + 1 >= stack.residual_from)
        for (size_t j = 0; j < y.size(); j++) y[j] += x[j];
      x.swap(y);
      out.D = cell.H, out.final_width = cell.K;
      out.finals.push_back(final);
    }
    out.states.swap(x);
  }
};

// How a decoder starts from the last states: as they are, or through tanh(W [final_1; …; final_L]).
struct Bridge {
  Linear W;
  const Table *table = nullptr;
  Bridge() = default;
  Bridge(const Folder &folder, const RecurrentEncoder &encoder, const Stack &stack) : table(folder.table) {
    if (folder.choice("model.start", {"copy", "project"}) == "project")
      W = Linear(folder, "decoder.bridge.W", encoder.layers * encoder.final_width, stack.width(), true);
    else if (encoder.layers != stack.depth() || encoder.final_width != stack.K())
      throw Unknown("a start from an encoder of other sizes");
  }
  void operator()(const Encoded &encoded, int64_t B, int64_t width, float *states, int64_t apart) const {
    const int64_t L = static_cast<int64_t>(encoded.finals.size()), K = encoded.final_width;
    Floats joined(B * L * K);
    for (int64_t b = 0; b < B; b++)
      for (int64_t l = 0; l < L; l++)
        std::memcpy(&joined[(b * L + l) * K], &encoded.finals[l][b * K], sizeof(float) * K);
    if (!W) {
      for (int64_t b = 0; b < B; b++) std::memcpy(states + b * apart, &joined[b * width], sizeof(float) * width);
      return;
    }
    W(B, joined.data(), L * K, states, apart);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * apart, width);
  }
};

struct Maxout {
  std::vector<Linear> maps;
  Maxout() = default;
  Maxout(const Folder &folder, const string &name, const std::vector<int64_t> &inputs) {
    for (size_t i = 0; i < inputs.size(); i++)
      maps.emplace_back(folder, name + ".maps." + std::to_string(i), inputs[i], i ? maps[0].N : -1, i == 0);
    if (maps[0].N % 2) throw Unknown("a maxout without pairs");
  }
  int64_t size() const { return maps[0].N / 2; }
  // The larger of each pair of the sum of linear maps.
  void operator()(int64_t M, const std::vector<const float *> &inputs, const std::vector<int64_t> &apart,
                  Floats &out) const {
    static thread_local Floats sums;
    const int64_t N = maps[0].N;
    sums.resize(M * N);
    maps[0](M, inputs[0], apart[0], sums.data(), N);
    for (size_t i = 1; i < maps.size(); i++) maps[i].add(M, inputs[i], apart[i], sums.data(), N);
    out.resize(M * N / 2);
    for (int64_t j = 0; j < M * N / 2; j++) out[j] = std::max(sums[2 * j], sums[2 * j + 1]);
  }
};

// What all recurrent decoders have.
struct RecurrentModel : Model {
  const Table *table;
  string cell_kind;
  RecurrentEncoder encoder;
  Embedding embedding;

  RecurrentModel(const Folder &folder, const string &cell, bool own_encoder = true)
      : table(folder.table), cell_kind(cell), embedding(folder, "decoder.embedding") {
    if (own_encoder) encoder = RecurrentEncoder(folder, cell);
    source_words = encoder.embedding.count;
    folder.agree("model.embedding", embedding.size);
  }
  void remember(const Attention &attention, const Sentences &sentences, const Encoded &encoded) const {
    for (size_t b = 0; b < sentences.size(); b++) {
      sentences[b]->memory.resize(1);
      attention.remember(encoded.tokens.lengths[b], &encoded.states[encoded.tokens.starts[b] * encoded.D],
                         sentences[b]->memory[0]);
    }
  }
};

// One step of a stack: gates (M, G) hold what enters the first layer. states (M, L K). -> top (M, H)
inline void climb(const Stack &stack, int64_t first_layer, int64_t M, Floats &x, float *states, int64_t apart,
                  const float *context, int64_t context_apart) {
  static thread_local Floats gates, own;
  for (int64_t layer = first_layer; layer < stack.depth(); layer++) {
    const Cell &cell = stack.cells[layer];
    gates.resize(M * cell.G);
    cell.W[0](M, x.data(), cell.W[0].K, gates.data(), cell.G);
    if (context) cell.W[1].add(M, context, context_apart, gates.data(), cell.G);
    own.resize(M * cell.K);
    for (int64_t i = 0; i < M; i++)
      std::memcpy(&own[i * cell.K], states + i * apart + layer * cell.K, sizeof(float) * cell.K);
    cell.step(M, gates.data(), own.data());
    Floats shown(M * cell.H);
    for (int64_t i = 0; i < M; i++) {
      std::memcpy(states + i * apart + layer * cell.K, &own[i * cell.K], sizeof(float) * cell.K);
      for (int64_t j = 0; j < cell.H; j++)
        shown[i * cell.H + j] = own[i * cell.K + j] + (layer + 1 >= stack.residual_from ? x[i * cell.H + j] : 0.0f);
    }
    x.swap(shown);
  }
}

// A cell whose gates are given; its state lies among others.
inline void step_apart(const Cell &cell, int64_t M, Floats &gates, float *states, int64_t apart, Floats &shown) {
  Floats own(M * cell.K);
  for (int64_t i = 0; i < M; i++) std::memcpy(&own[i * cell.K], states + i * apart, sizeof(float) * cell.K);
  cell.step(M, gates.data(), own.data());
  shown.resize(M * cell.H);
  for (int64_t i = 0; i < M; i++) {
    std::memcpy(states + i * apart, &own[i * cell.K], sizeof(float) * cell.K);
    std::memcpy(&shown[i * cell.H], &own[i * cell.K], sizeof(float) * cell.H);
  }
}

struct Sutskever : RecurrentModel {
  Bridge bridge;
  Stack stack;
  Linear W;
  explicit Sutskever(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        stack(folder, "decoder.stack.layers", cell_kind, folder.number("model.residual_from"), {embedding.size}),
        W(folder, "decoder.W", stack.H(), embedding.count, true) {
    bridge = Bridge(folder, encoder, stack);
    folder.agree("model.hidden", stack.H()), folder.agree("model.layers", stack.depth());
    state_width = stack.width(), V = W.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    bridge(encoded, static_cast<int64_t>(sentences.size()), stack.width(), states, state_width);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size());
    Floats x;
    embedding.rows(M, previous, x);
    climb(stack, 0, M, x, states, state_width, nullptr, 0);
    W(M, x.data(), stack.H(), logits, V);
  }
};

struct Cho : RecurrentModel {
  Cell reading;         // the encoder's
  Linear W, C, U;       // the decoder's cell
  Linear summary, start, G;
  Maxout readout;
  int64_t H;
  explicit Cho(const Folder &folder)
      : RecurrentModel(folder, "keeping", false) {
    encoder.embedding = Embedding(folder, "encoder.embedding");
    source_words = encoder.embedding.count;
    reading = Cell(folder, "encoder.cell", "keeping", {encoder.embedding.size});
    summary = Linear(folder, "decoder.V", reading.H, -1, true);
    H = summary.N;
    start = Linear(folder, "decoder.V_start", H, H, true);
    W = Linear(folder, "decoder.cell.W", embedding.size, 3 * H, true);
    C = Linear(folder, "decoder.cell.C", H, 3 * H), U = Linear(folder, "decoder.cell.U", H, 3 * H);
    readout = Maxout(folder, "decoder.readout", {H, embedding.size, H});
    G = Linear(folder, "decoder.G", readout.size(), embedding.count, true);
    folder.agree("model.hidden", H), folder.agree("model.maxout", readout.size());
    folder.agree("model.layers", 1), folder.agree("model.residual_from", 0);
    state_width = H, V = G.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    const Tokens &tokens = encoded.tokens;
    const int64_t B = static_cast<int64_t>(sentences.size());
    Floats x(tokens.total * encoder.embedding.size), shares, outputs(tokens.total * reading.H), finals(B * reading.K);
    for (int64_t b = 0; b < B; b++)
      for (int64_t s = 0; s < tokens.lengths[b]; s++)
        std::memcpy(&x[(tokens.starts[b] + s) * encoder.embedding.size], encoder.embedding[sentences[b]->ids[s]],
                    sizeof(float) * encoder.embedding.size);
    reading.W[0](tokens.total, x, shares);
    run(reading, tokens, shares, forwards, outputs.data(), reading.H, finals.data());
    Floats c(B * H);
    summary(B, finals.data(), reading.K, c.data(), H);
    table->tangent(c.data(), B * H);
    start(B, c.data(), H, states, state_width);
    table->tangent(states, B * H);
    for (int64_t b = 0; b < B; b++) sentences[b]->summary.assign(&c[b * H], &c[b * H] + H);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size());
    Floats e, c(M * H), gates(M * 3 * H), inner(M * 3 * H), said;
    embedding.rows(M, previous, e);
    for (int64_t i = 0; i < M; i++) std::memcpy(&c[i * H], rows[i].sentence->summary.data(), sizeof(float) * H);
    W(M, e.data(), embedding.size, gates.data(), 3 * H);
    C(M, c.data(), H, inner.data(), 3 * H);
    U.add(M, states, H, inner.data(), 3 * H);
    table->gru_after(M, H, gates.data(), inner.data(), states);
    readout(M, {states, e.data(), c.data()}, {H, embedding.size, H}, said);
    G(M, said.data(), G.K, logits, V);
  }
};

struct DeepCho : RecurrentModel {
  Stack stack;
  Linear summary, start, G;
  Maxout readout;
  explicit DeepCho(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        stack(folder, "decoder.stack.layers", cell_kind, folder.number("model.residual_from"),
              {embedding.size, encoder.D}, encoder.D) {
    const int64_t H = stack.H();
    if (H != encoder.D) throw Unknown("an encoder of another size");
    summary = Linear(folder, "decoder.V", H, H, true);
    start = Linear(folder, "decoder.V_start", H, stack.width(), true);
    readout = Maxout(folder, "decoder.readout", {H, embedding.size, H});
    G = Linear(folder, "decoder.G", readout.size(), embedding.count, true);
    folder.agree("model.hidden", H), folder.agree("model.maxout", readout.size());
    folder.agree("model.layers", stack.depth());
    state_width = stack.width(), V = G.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    const int64_t B = static_cast<int64_t>(sentences.size()), H = stack.H();
    Floats c(B * H);
    summary(B, encoded.finals.back().data(), encoded.final_width, c.data(), H);
    table->tangent(c.data(), B * H);
    start(B, c.data(), H, states, state_width);
    table->tangent(states, B * state_width);
    for (int64_t b = 0; b < B; b++) sentences[b]->summary.assign(&c[b * H], &c[b * H] + H);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = stack.H();
    Floats e, x, c(M * H), said;
    embedding.rows(M, previous, e);
    for (int64_t i = 0; i < M; i++) std::memcpy(&c[i * H], rows[i].sentence->summary.data(), sizeof(float) * H);
    x = e;
    climb(stack, 0, M, x, states, state_width, c.data(), H);
    readout(M, {x.data(), e.data(), c.data()}, {H, embedding.size, H}, said);
    G(M, said.data(), G.K, logits, V);
  }
};

struct Bahdanau : RecurrentModel {
  Attention attention;
  Cell cell;
  Linear W_s, W_o;
  Maxout readout;
  bool previous_state;
  explicit Bahdanau(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        cell(folder, "decoder.cell", cell_kind, {embedding.size, encoder.D}),
        readout(folder, "decoder.readout", {cell.H, embedding.size, encoder.D}),
        previous_state(folder.choice("model.readout", {"previous", "current"}) == "previous") {
    const int64_t shown = encoder.kind == "bidirectional" ? encoder.ahead[0].H : encoder.stack.H();
    W_s = Linear(folder, "decoder.W_s", shown, cell.H, true);
    W_o = Linear(folder, "decoder.W_o", readout.size(), embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", cell.H, encoder.D, 8);
    folder.agree("model.hidden", cell.H), folder.agree("model.maxout", readout.size());
    state_width = cell.K, V = W_o.N, layers = 1, heads = attention.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    // of two directions, the backward one: it has seen the whole source when it meets the first word
    const int64_t B = static_cast<int64_t>(sentences.size()), K = encoded.final_width;
    const int64_t from = encoder.kind == "bidirectional" ? K / 2 : 0;
    std::memset(states, 0, sizeof(float) * B * state_width);
    W_s(B, encoded.finals.back().data() + from, K, states, state_width);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * state_width, cell.H);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = cell.H, C = attention.width;
    Floats e, context(M * C), gates(M * cell.G), before(M * H), said;
    embedding.rows(M, previous, e);
    attention.attend(*this, rows, 0, states, state_width, context.data(), C);
    for (int64_t i = 0; i < M; i++) std::memcpy(&before[i * H], states + i * state_width, sizeof(float) * H);
    cell.W[0](M, e.data(), embedding.size, gates.data(), cell.G);
    cell.W[1].add(M, context.data(), C, gates.data(), cell.G);
    cell.step(M, gates.data(), states);
    const float *shown = previous_state ? before.data() : states;
    readout(M, {shown, e.data(), context.data()}, {previous_state ? H : state_width, embedding.size, C}, said);
    W_o(M, said.data(), W_o.K, logits, V);
  }
};

struct Conditional : RecurrentModel {
  Attention attention;
  Cell first, second;
  Linear W_s, W_o;
  Maxout readout;
  explicit Conditional(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        first(folder, "decoder.first", cell_kind, {embedding.size}),
        second(folder, "decoder.second", cell_kind, {encoder.D}), W_s(folder, "decoder.W_s", encoder.D, first.H, true),
        readout(folder, "decoder.readout", {first.H, embedding.size, encoder.D}) {
    if (first.H != second.H) throw Unknown("two cells of different sizes");
    W_o = Linear(folder, "decoder.W_o", readout.size(), embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", first.H, encoder.D, 8);
    folder.agree("model.hidden", first.H), folder.agree("model.maxout", readout.size());
    state_width = first.K, V = W_o.N, layers = 1, heads = attention.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    const int64_t B = static_cast<int64_t>(sentences.size()), D = encoded.D;
    Floats mean(B * D, 0.0f);
    for (int64_t b = 0; b < B; b++) {
      const int64_t S = encoded.tokens.lengths[b];
      for (int64_t s = 0; s < S; s++)
        for (int64_t j = 0; j < D; j++) mean[b * D + j] += encoded.states[(encoded.tokens.starts[b] + s) * D + j];
      for (int64_t j = 0; j < D; j++) mean[b * D + j] /= static_cast<float>(S);
    }
    std::memset(states, 0, sizeof(float) * B * state_width);
    W_s(B, mean.data(), D, states, state_width);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * state_width, first.H);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), C = attention.width;
    Floats e, context(M * C), gates(M * first.G), said;
    embedding.rows(M, previous, e);
    first.W[0](M, e.data(), embedding.size, gates.data(), first.G);
    first.step(M, gates.data(), states);
    attention.attend(*this, rows, 0, states, state_width, context.data(), C);
    second.W[0](M, context.data(), C, gates.data(), second.G);
    second.step(M, gates.data(), states);
    readout(M, {states, e.data(), context.data()}, {state_width, embedding.size, C}, said);
    W_o(M, said.data(), W_o.K, logits, V);
  }
};

struct Luong : RecurrentModel {
  Bridge bridge;
  Stack stack;
  Attention attention;
  Linear W_c, W_s;
  bool feeding;
  explicit Luong(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")), feeding(folder.yes("model.feeding")) {
    const int64_t H = folder.tensor("decoder.stack.layers.0.U.weight", {-1, -1}).size(1);
    const std::vector<int64_t> inputs = feeding ? std::vector<int64_t>{embedding.size, H} : std::vector<int64_t>{embedding.size};
    stack = Stack(folder, "decoder.stack.layers", cell_kind, folder.number("model.residual_from"), inputs);
    bridge = Bridge(folder, encoder, stack);
    W_c = Linear(folder, "decoder.W_c", encoder.D + H, H), W_s = Linear(folder, "decoder.W_s", H, embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", H, encoder.D, 8);
    folder.agree("model.hidden", H), folder.agree("model.layers", stack.depth());
    state_width = stack.width() + (feeding ? stack.H() : 0);
    V = W_s.N, layers = 1, heads = attention.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    const int64_t B = static_cast<int64_t>(sentences.size());
    std::memset(states, 0, sizeof(float) * B * state_width);
    bridge(encoded, B, stack.width(), states, state_width);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = stack.H(), C = attention.width;
    const Cell &bottom = stack.cells[0];
    Floats e, x, gates(M * bottom.G), both(M * (C + H)), said(M * H);
    embedding.rows(M, previous, e);
    bottom.W[0](M, e.data(), embedding.size, gates.data(), bottom.G);
    if (feeding) bottom.W[1].add(M, states + stack.width(), state_width, gates.data(), bottom.G);
    step_apart(bottom, M, gates, states, state_width, x);
    climb(stack, 1, M, x, states, state_width, nullptr, 0);
    attention.attend(*this, rows, 0, x.data(), H, both.data(), C + H);
    for (int64_t i = 0; i < M; i++) std::memcpy(&both[i * (C + H) + C], &x[i * H], sizeof(float) * H);
    W_c(M, both.data(), C + H, said.data(), H);
    table->tangent(said.data(), M * H);
    if (feeding)
      for (int64_t i = 0; i < M; i++)
        std::memcpy(states + i * state_width + stack.width(), &said[i * H], sizeof(float) * H);
    W_s(M, said.data(), H, logits, V);
  }
};

struct Gnmt : RecurrentModel {
  Bridge bridge;
  Stack stack;
  Attention attention;
  Linear W;
  explicit Gnmt(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        stack(folder, "decoder.stack.layers", cell_kind, folder.number("model.residual_from"),
              {embedding.size, encoder.D}, encoder.D),
        W(folder, "decoder.W", stack.H(), embedding.count, true) {
    bridge = Bridge(folder, encoder, stack);
    attention = Attention(folder, "decoder.attention", "model.attention", stack.H(), encoder.D, 8);
    folder.agree("model.hidden", stack.H()), folder.agree("model.layers", stack.depth());
    state_width = stack.width(), V = W.N, layers = 1, heads = attention.N;
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    bridge(encoded, static_cast<int64_t>(sentences.size()), stack.width(), states, state_width);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = stack.H(), C = attention.width;
    const Cell &bottom = stack.cells[0];
    Floats e, x, context(M * C), gates(M * bottom.G);
    embedding.rows(M, previous, e);
    attention.attend(*this, rows, 0, states, state_width, context.data(), C);  // asked from the bottom layer
    bottom.W[0](M, e.data(), embedding.size, gates.data(), bottom.G);
    bottom.W[1].add(M, context.data(), C, gates.data(), bottom.G);
    step_apart(bottom, M, gates, states, state_width, x);
    climb(stack, 1, M, x, states, state_width, context.data(), C);
    W(M, x.data(), H, logits, V);
  }
};

}  // namespace engine
