// The recurrent models: models/sutskever.py, cho.py, bahdanau.py, conditional.py, luong.py, gnmt.py.
#pragma once
#include "recurrent_parts.h"

namespace engine {

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
  Linear &output() override { return W; }
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
    say(rows, W, x.data(), stack.H(), logits);
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
  Linear &output() override { return G; }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    const Tokens &tokens = encoded.tokens;
    const int64_t B = static_cast<int64_t>(sentences.size());
    Floats x = tokens.embedded(sentences, encoder.embedding), shares;
    Floats outputs(tokens.total * reading.H), finals(B * reading.K);
    reading.W[0](tokens.total, x, shares);
    run(reading, tokens, shares, forwards, outputs.data(), reading.H, finals.data());
    tokens.show(sentences, outputs.data(), reading.H);
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
    say(rows, G, said.data(), G.K, logits);
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
  Linear &output() override { return G; }
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
    say(rows, G, said.data(), G.K, logits);
  }
};

// Word and context enter both the cell and the readout. What a word adds to them is kept for the next time; what a place
// of the source adds is computed once where a beam looks there again and again: the sum over places of a W h_s is W c.
struct Bahdanau : RecurrentModel {
  Attention attention;
  Cell cell;
  Linear W_s, W_o;
  Maxout readout;
  bool previous_state;
  std::unique_ptr<WordShares> of_words_said;  // in the readout
  explicit Bahdanau(const Folder &folder)
      : RecurrentModel(folder, folder.word("model.cell")),
        cell(folder, "decoder.cell", cell_kind, {embedding.size, encoder.D}),
        readout(folder, "decoder.readout", {cell.H, embedding.size, encoder.D}),
        previous_state(folder.choice("model.readout", {"previous", "current"}) == "previous") {
    of_words = std::make_unique<WordShares>(embedding.count, cell.G);
    of_words_said = std::make_unique<WordShares>(embedding.count, readout.maps[1].N);
    readout.maps[1].bias.swap(readout.maps[0].bias);
    const int64_t shown = encoder.kind == "bidirectional" ? encoder.ahead[0].H : encoder.stack.H();
    W_s = Linear(folder, "decoder.W_s", shown, cell.H, true);
    W_o = Linear(folder, "decoder.W_o", readout.size(), embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", cell.H, encoder.D, 8);
    folder.agree("model.hidden", cell.H), folder.agree("model.maxout", readout.size());
    state_width = cell.K, V = W_o.N, layers = 1, heads = attention.N;
  }
  Linear &output() override { return W_o; }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    for (size_t b = 0; b < sentences.size(); b++)
      if (sentences[b]->wide && !sentences[b]->watched && !attention.several && sentences[b]->S() <= MOST_PLACES)
        map_values(&encoded.states[encoded.tokens.starts[b] * encoded.D], sentences[b]->memory[0]);
    // of two directions, the backward one: it has seen the whole source when it meets the first word
    const int64_t B = static_cast<int64_t>(sentences.size()), K = encoded.final_width;
    const int64_t from = encoder.kind == "bidirectional" ? K / 2 : 0;
    std::memset(states, 0, sizeof(float) * B * state_width);
    W_s(B, encoded.finals.back().data() + from, K, states, state_width);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * state_width, cell.H);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), G = cell.G, R = readout.maps[0].N;
    const int64_t C = std::max(attention.width, G + R);
    static thread_local Floats looked, gates, sums, said;  // whole rows are written before they are read
    looked.resize(M * C), gates.resize(M * G), sums.resize(M * R);
    attention.attend(*this, rows, 0, states, state_width, looked.data(), C);
    (*of_words)(embedding, cell.W[0], M, previous, gates.data());
    (*of_words_said)(embedding, readout.maps[1], M, previous, sums.data());
    if (previous_state) readout.maps[0].add(M, states, state_width, sums.data(), R);
    map_contexts(rows, looked.data(), C);
    for (int64_t i = 0; i < M; i++) {
      table->add(&gates[i * G], &looked[i * C], G);
      table->add(&sums[i * R], &looked[i * C + G], R);
    }
    cell.step(M, gates.data(), states);
    if (!previous_state) readout.maps[0].add(M, states, state_width, sums.data(), R);
    readout(M, sums.data(), said);
    say(rows, W_o, said.data(), W_o.K, logits);
  }

 private:
  static constexpr int64_t MOST_PLACES = 256;  // beyond them, memory is dearer than products
  // x (M, D) -> what it adds to gates and readout (M, G + R)
  void map(int64_t M, const float *x, float *y, int64_t apart) const {
    cell.W[1](M, x, attention.width, y, apart);
    readout.maps[2](M, x, attention.width, y + cell.G, apart);
  }
  void map_values(const float *states, Memory &memory) const {
    const int64_t S = static_cast<int64_t>(memory.mask.size());
    memory.width = cell.G + readout.maps[2].N, memory.mapped = true;
    memory.values.resize(S * memory.width);
    map(S, states, memory.values.data(), memory.width);
  }
  // The contexts that have not come from such values, in their places.
  void map_contexts(const std::vector<Row> &rows, float *looked, int64_t apart) const {
    static thread_local Floats plain, mapped;
    const int64_t M = static_cast<int64_t>(rows.size()), D = attention.width, C = cell.G + readout.maps[2].N;
    int64_t count = 0;
    plain.resize(M * D), mapped.resize(M * C);
    for (int64_t i = 0; i < M; i++)
      if (!rows[i].sentence->memory[0].mapped) std::memcpy(&plain[count++ * D], looked + i * apart, sizeof(float) * D);
    if (!count) return;
    map(count, plain.data(), mapped.data(), C);
    for (int64_t i = M; i-- > 0;)
      if (!rows[i].sentence->memory[0].mapped) std::memcpy(looked + i * apart, &mapped[--count * C], sizeof(float) * C);
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
    of_words = std::make_unique<WordShares>(embedding.count, first.G);
    if (first.H != second.H) throw Unknown("two cells of different sizes");
    W_o = Linear(folder, "decoder.W_o", readout.size(), embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", first.H, encoder.D, 8);
    folder.agree("model.hidden", first.H), folder.agree("model.maxout", readout.size());
    state_width = first.K, V = W_o.N, layers = 1, heads = attention.N;
  }
  Linear &output() override { return W_o; }
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
    (*of_words)(embedding, first.W[0], M, previous, gates.data());
    first.step(M, gates.data(), states);
    attention.attend(*this, rows, 0, states, state_width, context.data(), C);
    second.W[0](M, context.data(), C, gates.data(), second.G);
    second.step(M, gates.data(), states);
    readout(M, {states, e.data(), context.data()}, {state_width, embedding.size, C}, said);
    say(rows, W_o, said.data(), W_o.K, logits);
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
    of_words = std::make_unique<WordShares>(embedding.count, stack.cells[0].G);
    bridge = Bridge(folder, encoder, stack);
    W_c = Linear(folder, "decoder.W_c", encoder.D + H, H), W_s = Linear(folder, "decoder.W_s", H, embedding.count, true);
    attention = Attention(folder, "decoder.attention", "model.attention", H, encoder.D, 8);
    folder.agree("model.hidden", H), folder.agree("model.layers", stack.depth());
    state_width = stack.width() + (feeding ? stack.H() : 0);
    V = W_s.N, layers = 1, heads = attention.N;
  }
  Linear &output() override { return W_s; }
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
    Floats x, gates(M * bottom.G), both(M * (C + H)), said(M * H);
    (*of_words)(embedding, bottom.W[0], M, previous, gates.data());
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
    say(rows, W_s, said.data(), H, logits);
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
    of_words = std::make_unique<WordShares>(embedding.count, stack.cells[0].G);
    bridge = Bridge(folder, encoder, stack);
    attention = Attention(folder, "decoder.attention", "model.attention", stack.H(), encoder.D, 8);
    folder.agree("model.hidden", stack.H()), folder.agree("model.layers", stack.depth());
    state_width = stack.width(), V = W.N, layers = 1, heads = attention.N;
  }
  Linear &output() override { return W; }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(attention, sentences, encoded);
    bridge(encoded, static_cast<int64_t>(sentences.size()), stack.width(), states, state_width);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = stack.H(), C = attention.width;
    const Cell &bottom = stack.cells[0];
    Floats x, context(M * C), gates(M * bottom.G);
    attention.attend(*this, rows, 0, states, state_width, context.data(), C);  // asked from the bottom layer
    (*of_words)(embedding, bottom.W[0], M, previous, gates.data());
    bottom.W[1].add(M, context.data(), C, gates.data(), bottom.G);
    step_apart(bottom, M, gates, states, state_width, x);
    climb(stack, 1, M, x, states, state_width, context.data(), C);
    say(rows, W, x.data(), H, logits);
  }
};

}  // namespace engine
