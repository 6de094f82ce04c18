// The state of the page: the models, the sentence and its answer. One request is open at a time; a new one replaces it.
import { computed, effect, signal } from "@preact/signals";
import { decimal, number, set, view, word } from "./address";
import * as api from "./api";
import { type Search, TASKS } from "./task";
import type { Part, Trace } from "./trace";
import { shape, tidied, way } from "./trace";

/** A page written by `regarde show --html` contains its model and its trace. */
interface Enclosed {
  model: api.Model;
  trace: Trace;
}

const element = document.getElementById("enclosed");
export const enclosed: Enclosed | null = element ? JSON.parse(element.textContent ?? "null") : null;

export const models = signal<api.Model[]>(enclosed ? [enclosed.model] : []);
export const problem = signal("");
export const busy = signal(false);
export const trace = signal<Trace | null>(enclosed && tidied(enclosed.trace, (TASKS[enclosed.model.task ?? ""] ?? TASKS.translation).search !== "none"));

export const model = computed(() => models.value.find(({ name }) => name === word("model")) ?? models.value[0] ?? null);
export const text = computed(() => word("text"));
export const task = computed(() => TASKS[model.value?.task ?? ""] ?? TASKS.translation);

/** A trace of the model's task, as the views read it. */
export const read = (found: Trace): Trace => tidied(found, task.value.search !== "none");

/** The first view, Step and Align share one search; each other view has its own, and uses that one until another is chosen. */
const OWN = new Set(["beam", "whatif", "compare"]);
const own = (name: string) => (OWN.has(view.value) ? `${view.value}.${name}` : name);
export const beamKey = computed(() => own("beam"));
export const rankKey = computed(() => own("rank"));
export const beam = computed(() => Math.min(number(beamKey.value) ?? number("beam") ?? 1, 20) || 1);

/** How answers are searched in this view. A view with a search of its own has a beam, unless a beam finds nothing else. */
export const search = computed<Search>(() => {
  if (view.value === "beam") return "beam";
  return OWN.has(view.value) && task.value.search === "sampling" ? "beam" : task.value.search;
});

/** The settings of samples; a length bounds every search of a language model. */
export const sampling = computed(() => ({
  temperature: Math.min(Math.max(decimal("temperature") ?? 0.8, 0.05), 10),
  top_k: number("top_k") ?? 0,
  top_p: Math.min(decimal("top_p") ?? 1, 1),
  seed: number("seed") ?? 1,
  length: Math.min(Math.max(number("length") ?? 40, 1), 400),
}));
export const bounded = (): { length?: number } => (task.value.search === "sampling" ? { length: sampling.value.length } : {});

/** Whether there is a text to answer. */
export const given = computed(() => task.value.blank || text.value.trim() !== "");

/** The selected hypothesis, and its steps. */
export const chosen = computed(() => {
  const found = trace.value?.hypotheses ?? [];
  return found[Math.min(number("rank") ?? 0, found.length - 1)] ?? null;
});
export const moments = computed(() => (trace.value && chosen.value ? way(trace.value, chosen.value) : []));
export const parts = computed(() => (trace.value ? shape(trace.value) : { layers: 0, heads: 0 }));

/** The layer and head of the address; 0 where there is only one. */
export const part = computed<Part>(() => {
  const { layers, heads } = parts.value;
  const within = (name: string, count: number) => {
    const given = number(name);
    return count === 1 ? 0 : given !== null && given < count ? given : null;
  };
  return { layer: within("layer", layers), head: within("head", heads) };
});

const TRACED = new Set(["step", "align"]); // views that read the trace of the one sentence
const PAUSE = 220; // ms after the last key before the request

/** Send a request whenever the question changes, after a pause. If it fails, the answer is null: no old answer stays. */
export function follow<Q, A>(
  question: () => Q | null,
  ask: (question: Q, signal: AbortSignal) => Promise<A>,
  give: (answer: A | null) => void,
): () => void {
  const key = computed(() => JSON.stringify(question())); // an equal question is not sent again
  return effect(() => {
    const question: Q | null = JSON.parse(key.value);
    if (question === null) {
      if (models.peek().length) problem.value = "";
      give(null);
      return undefined;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => void one(question, stop.signal, ask, give), PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
      busy.value = false;
    };
  });
}

async function one<Q, A>(
  question: Q,
  signal: AbortSignal,
  ask: (question: Q, signal: AbortSignal) => Promise<A>,
  give: (answer: A | null) => void,
): Promise<void> {
  busy.value = true;
  try {
    const answer = await ask(question, signal);
    if (signal.aborted) return;
    problem.value = "";
    give(answer);
  } catch (error) {
    if (signal.aborted) return;
    problem.value = error instanceof api.Problem ? error.message : String(error);
    give(null);
  }
  busy.value = false;
}

/** The request of the address; null without a model or a text. */
export function question(): api.PredictRequest | null {
  if (!model.value || !given.value) return null;
  const request = { model: model.value.name, text: text.value };
  if (task.value.search === "beam") return { ...request, beam: beam.value, n_best: Math.min(beam.value, 5) };
  return task.value.search === "sampling" ? { ...request, ...sampling.value } : request;
}

export async function start(): Promise<void> {
  if (enclosed) {
    if (!TRACED.has(view.peek())) set({});
    return;
  }
  try {
    models.value = await api.models();
  } catch (error) {
    problem.value = (error as Error).message;
  }
  follow(() => (TRACED.has(view.value) && !task.value.without[view.value] ? question() : null), api.trace, (found) => {
    if (found || TRACED.has(view.peek())) trace.value = found && read(found); // other views leave it as it is
  });
}
