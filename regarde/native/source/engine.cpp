// The engine's C interface: build a model from a folder's settings and tensors, then decode.
#include <algorithm>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>

#include "engine/continuous.h"
#include "engine/copying.h"
#include "engine/ensemble.h"
#include "engine/language.h"
#include "engine/pointing.h"
#include "engine/reading.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Engine {
  engine::Folder folder;
  std::unique_ptr<engine::Model> model;
  engine::Shortlist shortlist;
  std::string error;
};

using engine::Answer;

std::unique_ptr<engine::Model> build_plain(const engine::Folder &folder) {
  const std::string kind = folder.word("model.kind");
  if (kind == "sutskever") return std::make_unique<engine::Sutskever>(folder);
  if (kind == "cho" && folder.word("model.cell") == "paper") return std::make_unique<engine::Cho>(folder);
  if (kind == "cho") return std::make_unique<engine::DeepCho>(folder);
  if (kind == "bahdanau") return std::make_unique<engine::Bahdanau>(folder);
  if (kind == "conditional") return std::make_unique<engine::Conditional>(folder);
  if (kind == "luong") return std::make_unique<engine::Luong>(folder);
  if (kind == "gnmt") return std::make_unique<engine::Gnmt>(folder);
  if (kind == "transformer") return std::make_unique<engine::Transformer>(folder);
  if (kind == "pointer") return std::make_unique<engine::Pointer>(folder);
  if (kind == "span") return std::make_unique<engine::Span>(folder);
  if (kind == "classifier") return std::make_unique<engine::Classifier>(folder);
  if (kind == "tagger") return std::make_unique<engine::Tagger>(folder);
  if (kind == "recurrent-lm") return std::make_unique<engine::RecurrentLanguage>(folder);
  if (kind == "attentive-lm") return std::make_unique<engine::AttentiveLanguage>(folder);
  if (kind == "transformer-lm") return std::make_unique<engine::TransformerLanguage>(folder);
  throw engine::Unknown("a model of kind " + kind);
}

std::unique_ptr<engine::Model> build(const engine::Folder &folder) {
  if (folder.word("model.copying.kind", "none") == "none") return build_plain(folder);
  return std::make_unique<engine::Copying>(folder, build_plain);
}

// Settings that change nothing once a model is trained, or that are read elsewhere.
bool about_training(const std::string &path) {
  for (const char *known :
       {"model.dropout", "model.penalty", "model.spread", "model.self_attention_dropout", "model.init", "model.variational", "model.footnote_14",
        "model.longest", "model.encoder.longest", "model.attention.dropout", "model.attention.noise", "model.attention.score.identity"})
    if (path == known) return true;
  return false;
}

}  // namespace

EXPORT void *engine_new(int avx2) {
  auto *made = new Engine;
  made->folder.table = &portable_table;
#if defined(__x86_64__)
  if (avx2) made->folder.table = &avx2_table;
#else
  (void)avx2;
#endif
  return made;
}

EXPORT void engine_free(void *handle) { delete static_cast<Engine *>(handle); }

EXPORT void engine_setting(void *handle, const char *path, const char *value) {
  static_cast<Engine *>(handle)->folder.settings[path] = value;
}

// The data must stay where it is until the engine is built. What is `mapped` lies in a file that is only read.
EXPORT void engine_tensor(void *handle, const char *name, int in_bytes, const void *data, int64_t axes,
                          const int64_t *shape, int mapped) {
  static_cast<Engine *>(handle)->folder.tensors[name] = {std::vector<int64_t>(shape, shape + axes), in_bytes != 0, data,
                                                         mapped != 0};
}

// Null, or why there is no such model here.
EXPORT const char *engine_build(void *handle) {
  auto *made = static_cast<Engine *>(handle);
  try {
    made->model = build(made->folder);
    if (made->model->V != made->folder.number("vocabulary.target") || made->model->V <= engine::EOS ||
        made->model->source_words != made->folder.number("vocabulary.source"))
      throw engine::Unknown("weights for so many words");
    for (const auto &setting : made->folder.settings)
      if (!made->folder.asked.count(setting.first) && !about_training(setting.first))
        throw engine::Unknown("the setting " + setting.first);
    for (const auto &tensor : made->folder.tensors)
      if (!made->folder.used.count(tensor.first)) throw engine::Unknown("what to do with the tensor " + tensor.first);
    made->folder.tensors.clear();  // whatever is needed of them was copied or packed
    return nullptr;
  } catch (const std::exception &problem) {
    made->error = engine::cause(problem);
    return made->error.c_str();
  }
}

// Make an engine of others, which must live as long as it does; the offset of each member's attention. Null, or why not.
EXPORT const char *engine_join(void *handle, void *const *members, const int64_t *offsets, int64_t count) {
  auto *made = static_cast<Engine *>(handle);
  try {
    std::vector<engine::Model *> models;
    for (int64_t m = 0; m < count; m++) models.push_back(static_cast<Engine *>(members[m])->model.get());
    made->model = std::make_unique<engine::Ensemble>(made->folder.table, models,
                                                     std::vector<int64_t>(offsets, offsets + count));
    return nullptr;
  } catch (const std::exception &problem) {
    made->error = engine::cause(problem);
    return made->error.c_str();
  }
}

// From now on a sentence says what the shortlist has for its words, and nothing else. Null, or why not.
EXPORT const char *engine_shortlist(void *handle, const int64_t *frequent, int64_t count, const int64_t *starts,
                                    const int64_t *ids) {
  auto *made = static_cast<Engine *>(handle);
  try {
    const int64_t words = made->model->source_words;
    engine::Shortlist given;
    given.frequent.assign(frequent, frequent + count);
    given.starts.assign(starts, starts + words + 1);
    given.ids.assign(ids, ids + starts[words]);
    for (const auto *list : {&given.frequent, &given.ids})
      for (int64_t word : *list)
        if (word < 0 || word >= made->model->V) throw engine::Unknown("a word of the shortlist");
    made->model->shorten();
    made->shortlist = std::move(given);
    return nullptr;
  } catch (const std::exception &problem) {
    made->error = engine::cause(problem);
    return made->error.c_str();
  }
}

// An answer, which the caller frees; null where there is no memory even for that.
EXPORT void *engine_decode(void *handle, const engine::Request *request) {
  auto *made = static_cast<Engine *>(handle);
  auto *answer = new (std::nothrow) Answer;
  if (!answer) return nullptr;
  try {
    engine::Search search(*made->model, *made->folder.table, *request, made->shortlist);
    std::vector<std::thread> others;
    std::vector<std::exception_ptr> problems(std::max<int64_t>(1, request->threads));
    const int64_t workers = std::min(request->threads, search.tasks());
    // threads left over help those who have a sentence, as far as there are cores for them
    const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
    const int64_t each = workers ? std::min(request->threads, cores) / workers : 1;
    auto worker = [&](size_t i) {
      try {
        std::unique_ptr<engine::Crew> helpers = each > 1 ? std::make_unique<engine::Crew>(each) : nullptr;
        engine::crew() = helpers.get();
        engine::work(search, *made->model, request->rows);
      } catch (...) {
        problems[i] = std::current_exception();
      }
      engine::crew() = nullptr;
    };
    others.reserve(static_cast<size_t>(std::max<int64_t>(1, workers)));
    try {
      for (int64_t i = 1; i < workers; i++) others.emplace_back(worker, static_cast<size_t>(i));
    } catch (const std::system_error &) {  // no more threads to be had: those there are do the work
    }
    worker(0);
    for (std::thread &other : others) other.join();
    for (const auto &problem : problems)
      if (problem) std::rethrow_exception(problem);
    answer->take(search);
  } catch (const std::exception &problem) {
    answer->error = engine::cause(problem);
  }
  return answer;
}

// What the encoder makes of a source, which is given with EOS: of how many words, and their states; none of several models.
EXPORT void *engine_states(void *handle, const int64_t *ids, int64_t count) {
  auto *answer = new (std::nothrow) Answer;
  if (!answer) return nullptr;
  try {
    const engine::Model &model = *static_cast<Engine *>(handle)->model;
    engine::Sentence sentence;
    sentence.ids.assign(ids, ids + count);
    model.spell(sentence);
    sentence.watched = true;
    engine::Floats first(model.state_width);
    model.encode({&sentence}, first.data());
    answer->numbers = {sentence.S()};
    answer->reals.assign(sentence.states.begin(), sentence.states.end());
  } catch (const std::exception &problem) {
    answer->error = engine::cause(problem);
  }
  return answer;
}

EXPORT const char *answer_error(const void *handle) {
  const auto *answer = static_cast<const Answer *>(handle);
  return answer->error.empty() ? nullptr : answer->error.c_str();
}
EXPORT const int64_t *answer_numbers(const void *handle, int64_t *count) {
  const auto *answer = static_cast<const Answer *>(handle);
  *count = static_cast<int64_t>(answer->numbers.size());
  return answer->numbers.data();
}
EXPORT const float *answer_reals(const void *handle, int64_t *count) {
  const auto *answer = static_cast<const Answer *>(handle);
  *count = static_cast<int64_t>(answer->reals.size());
  return answer->reals.data();
}
EXPORT void answer_free(void *handle) { delete static_cast<Answer *>(handle); }

// Requests while others are answered; the engine must live as long as this does. Null where there are no threads to be had.
EXPORT void *continuous_new(void *handle, int64_t rows, int64_t threads, int64_t told) {
  const auto *made = static_cast<Engine *>(handle);
  try {
    return new engine::Continuous(*made->model, *made->folder.table, made->shortlist, rows, threads, static_cast<int>(told));
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT void continuous_free(void *handle) { delete static_cast<engine::Continuous *>(handle); }
EXPORT void continuous_submit(void *handle, int64_t number, const engine::Request *request, int64_t followed) {
  static_cast<engine::Continuous *>(handle)->submit(number, *request, followed != 0);
}
EXPORT void continuous_cancel(void *handle, int64_t number) {
  static_cast<engine::Continuous *>(handle)->cancel(number);
}
// The next event as an answer, which the caller frees; null: none yet.
EXPORT void *continuous_next(void *handle, int64_t *number, int64_t *kind) {
  engine::Event event{};
  if (!static_cast<engine::Continuous *>(handle)->next(event)) return nullptr;
  *number = event.number, *kind = event.kind;
  return event.answer.release();
}

// Of attention: layers, heads, whether a trace has energies, whether it is over the words said.
EXPORT void engine_shape(void *handle, int64_t *found) {
  const engine::Model &model = *static_cast<Engine *>(handle)->model;
  found[0] = model.layers, found[1] = model.heads, found[2] = model.scored, found[3] = model.looks_back;
}
