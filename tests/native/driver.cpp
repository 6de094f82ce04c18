// The library without Python: reads models and sentences, decodes, runs training kernels, prints every number it gets.
// Built for two processors, or with the compiler's sanitizers, it must print the same (test_driver.py).
//
//     driver portable|best < cases
//
// A case is lines of fields apart by tabs, numbers in hexadecimal:  setting PATH VALUE · tensor NAME f|b AXES SIZE…
// NUMBER… · source ID… · decode KIND WIDTH
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.h"
#include "engine/searching.h"

extern "C" {
int has_avx2();
const Table *kernel_table(int avx2);
int tables_agree(const Table *, const Table *);
void *engine_new(int avx2);
void engine_free(void *);
void engine_setting(void *, const char *, const char *);
void engine_tensor(void *, const char *, int, const void *, int64_t, const int64_t *);
const char *engine_build(void *);
void *engine_decode(void *, const engine::Request *);
const char *answer_error(const void *);
const int64_t *answer_numbers(const void *, int64_t *);
const float *answer_reals(const void *, int64_t *);
void answer_free(void *);
int recurrent_forward_portable_f32(const Recurrent *);
int recurrent_backward_portable_f32(const Recurrent *);
int additive_forward_portable_f32(const Additive *);
int additive_backward_portable_f32(const Additive *);
int window_forward_portable_f32(const Window *);
int window_backward_portable_f32(const Window *);
int field_forward_portable_f32(const Field *);
int field_backward_portable_f32(const Field *);
int cross_entropy_portable_f32(const CrossEntropy *);
int dropout_portable_f32(const Dropout *);
}

namespace {

using Floats = std::vector<float>;

int fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

template <class Numbers> void print(const char *what, const Numbers &numbers) {
  std::printf("%s", what);
  for (auto number : numbers) std::printf(" %.9g", static_cast<double>(number));
  std::printf("\n");
}

Floats drawn(size_t count, int seed) {
  Floats found(count);
  for (size_t i = 0; i < count; i++) found[i] = static_cast<float>((i * 37 + seed * 11) % 101) / 50 - 1;
  return found;
}

// A model on its way: tensors stay here until it is built.
struct Case {
  void *handle;
  std::vector<Floats> floats;
  std::vector<std::vector<int8_t>> bytes;
  std::vector<int64_t> starts{0}, ids;
  explicit Case(bool best) : handle(engine_new(best)) {}
  ~Case() { engine_free(handle); }

  void tensor(std::istream &fields) {
    std::string name, kind, number;
    int64_t axes, total = 1;
    fields >> name >> kind >> axes;
    std::vector<int64_t> shape(axes);
    for (int64_t &size : shape) fields >> size, total *= size;
    Floats read;
    while (fields >> number) read.push_back(std::strtof(number.c_str(), nullptr));
    if (static_cast<int64_t>(read.size()) != total) std::exit(fail("a tensor of another size"));
    const void *data;
    if (kind == "b") data = bytes.emplace_back(read.begin(), read.end()).data();
    else data = floats.emplace_back(std::move(read)).data();
    engine_tensor(handle, name.c_str(), kind == "b", data, axes, shape.data());
  }
  void source(std::istream &fields) {
    for (int64_t id; fields >> id;) ids.push_back(id);
    starts.push_back(static_cast<int64_t>(ids.size()));
  }
  int decode(std::istream &fields) {
    engine::Request request{};
    fields >> request.kind >> request.size;
    if (const char *problem = engine_build(handle)) return fail(problem);
    floats.clear(), bytes.clear();  // nobody may need them any more
    request.count = static_cast<int64_t>(starts.size()) - 1, request.n_best = request.kind == engine::BEAM ? request.size : 1;
    request.max_extra = 6, request.allow_unknown = 1, request.rows = 5, request.threads = 2;
    request.alpha = 0.6, request.max_ratio = 1, request.top_p = 1, request.temperature = 1;
    request.starts = starts.data(), request.ids = ids.data();
    void *answer = engine_decode(handle, &request);
    if (const char *problem = answer_error(answer)) return fail(problem);
    int64_t count = 0;
    const int64_t *numbers = answer_numbers(answer, &count);
    print("numbers", std::vector<int64_t>(numbers, numbers + count));
    const float *reals = answer_reals(answer, &count);
    print("reals", Floats(reals, reals + count));
    answer_free(answer);
    return 0;
  }
};

void recurrent(int64_t kind) {
  const int64_t B = 3, T = 4, H = 11, G = (kind == LSTM ? 4 : kind == GRU ? 3 : 1) * H;
  const std::vector<uint8_t> mask = {1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0};
  const Floats U_gates = drawn(2 * H * H, 1), U = drawn(G * H, 2), shares = drawn(B * T * G, 3), start = drawn(B * H, 4);
  const Floats start_carry = drawn(B * H, 5), d_outputs = drawn(B * T * H, 6);
  Floats outputs(B * T * H), carry(B * T * H), gates(B * T * G), reset(B * T * H), d_gates(B * T * G);
  Floats d_state(B * H), d_carry(B * H);
  Recurrent a{};
  a.B = B, a.T = T, a.H = H, a.kind = kind, a.backwards = 1, a.threads = 2;
  a.mask = mask.data(), a.U_gates = U_gates.data(), a.U = U.data(), a.shares = shares.data(), a.start = start.data();
  a.start_carry = start_carry.data(), a.outputs = outputs.data(), a.carry = carry.data(), a.gates = gates.data();
  a.reset = reset.data(), a.d_outputs = d_outputs.data(), a.d_state = d_state.data(), a.d_carry = d_carry.data();
  a.d_gates = d_gates.data();
  recurrent_forward_portable_f32(&a), recurrent_backward_portable_f32(&a);
  print("outputs", outputs), print("d_gates", d_gates), print("d_state", d_state);
}

void additive() {
  const int64_t B = 2, T = 3, S = 5, A = 13;
  const Floats queries = drawn(B * T * A, 1), keys = drawn(B * S * A, 2), v = drawn(A, 3), d_scores = drawn(B * T * S, 4);
  Floats scores(B * T * S), d_queries(B * T * A), d_keys(B * S * A), d_v(A);
  Additive a{};
  a.B = B, a.T = T, a.S = S, a.A = A, a.threads = 1, a.queries = queries.data(), a.keys = keys.data(), a.v = v.data();
  a.scores = scores.data(), a.d_scores = d_scores.data(), a.d_queries = d_queries.data(), a.d_keys = d_keys.data();
  a.d_v = d_v.data();
  additive_forward_portable_f32(&a), additive_backward_portable_f32(&a);
  print("scores", scores), print("d_queries", d_queries), print("d_keys", d_keys), print("d_v", d_v);
}

void windows(bool additive) {
  const int64_t B = 2, T = 4, S = 6, A = 13, C = 11, window = 3;
  const Floats queries = drawn(B * T * A, 1), keys = drawn(B * S * A, 2), values = drawn(B * S * C, 3), v = drawn(A, 4);
  const Floats d_contexts = drawn(B * T * C, 5);
  Floats weights(B * T * window), contexts(B * T * C), d_queries(B * T * A), d_keys(B * S * A), d_values(B * S * C);
  Floats d_v(2 * A);
  Window a{};
  a.B = B, a.T = T, a.S = S, a.A = A, a.C = C, a.window = window, a.threads = 2, a.queries = queries.data();
  a.keys = keys.data(), a.values = values.data(), a.v = additive ? v.data() : nullptr, a.weights = weights.data();
  a.contexts = contexts.data(), a.d_contexts = d_contexts.data(), a.d_queries = d_queries.data();
  a.d_keys = d_keys.data(), a.d_values = d_values.data(), a.d_v = d_v.data();
  window_forward_portable_f32(&a), window_backward_portable_f32(&a);
  print("contexts", contexts), print("d_keys", d_keys), print("d_values", d_values);
}

void field() {
  const int64_t B = 3, S = 5, V = 11;
  const std::vector<int64_t> lengths = {4, 0, 2};
  const Floats P = drawn(B * S * V, 1), A = drawn(V * V, 2);
  Floats beta(B * S * V), d_beta = drawn(B * S * V, 3), d_P(B * S * V), d_A(2 * V * V);
  Field a{};
  a.B = B, a.S = S, a.V = V, a.first = 4, a.end = 2, a.threads = 2, a.lengths = lengths.data(), a.P = P.data();
  a.A = A.data(), a.beta = beta.data(), a.d_beta = d_beta.data(), a.d_P = d_P.data(), a.d_A = d_A.data();
  field_forward_portable_f32(&a), field_backward_portable_f32(&a);
  print("beta", beta), print("d_P", d_P), print("d_A", d_A);
}

void losses() {
  const int64_t rows = 3, V = 21;
  Floats logits = drawn(rows * V, 1);
  const std::vector<int64_t> targets = {4, 0, 20};
  std::vector<double> found(rows);
  CrossEntropy a{};
  a.rows = rows, a.V = V, a.ignored = 0, a.threads = 1, a.smoothing = 0.1, a.scale = 1;
  a.logits = logits.data(), a.targets = targets.data(), a.losses = found.data();
  cross_entropy_portable_f32(&a);
  print("gradients", logits);

  const Floats x = drawn(100, 2);
  Floats y(100);
  Dropout d{};
  d.count = 100, d.seed = 7, d.threads = 1, d.probability = 0.3, d.x = x.data(), d.y = y.data();
  dropout_portable_f32(&d);
  print("dropped", y);
}

}  // namespace

int main(int count, char **words) {
  const bool best = count > 1 && !std::strcmp(words[1], "best") && has_avx2();
  if (best && !tables_agree(kernel_table(1), kernel_table(0))) return fail("tables that differ");
  std::unique_ptr<Case> current;
  for (std::string line, word; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    fields >> word;
    if (!current) current = std::make_unique<Case>(best);
    if (word == "setting") {
      std::string path, value;
      fields >> path >> value;
      engine_setting(current->handle, path.c_str(), value.c_str());
    } else if (word == "tensor") {
      current->tensor(fields);
    } else if (word == "source") {
      current->source(fields);
    } else if (word == "decode") {
      if (current->decode(fields)) return 1;
      current.reset();
    }
  }
  for (int64_t kind : {SIMPLE, GRU, LSTM}) recurrent(kind);
  additive(), windows(true), windows(false), field(), losses();
  return 0;
}
