// One step of the decoder, all that its columns show: computed once, read by chart, formulas and diagram.
import { computed } from "@preact/signals";
import { number, set, word } from "../address";
import { MIXTURE, NAMES, type Phase, type Plan, plan } from "../model";
import { chosen, model, moments, part, trace } from "../session";
import { looked, mixture, taken } from "../trace";

export const description = computed<Plan | null>(() => (model.value ? plan(model.value) : null));

/** A model without attention has no scores and weights. */
export const plain = computed(() => ["none", "alone"].includes(description.value?.place ?? ""));

/** The tokens that attention can look at: the source, or the answer so far. */
export const columns = computed(() => {
  const tokens = trace.value && chosen.value ? looked(trace.value, chosen.value) : [];
  return trace.value?.looks_back ? tokens.slice(0, t.value + 1) : tokens;
});

/** The step of the address, within the sentence. */
export const t = computed(() => Math.max(0, Math.min(number("step") ?? trace.value?.prompt_tokens ?? 0, moments.value.length - 1)));
export const moment = computed(() => moments.value[t.value] ?? null);

/** What the step has reached; null for all of it. */
export const phase = computed<Phase | null>(() => {
  const given = word("phase") as Phase;
  return description.value?.phases.includes(given) ? given : null;
});

export function reached(each: Phase): boolean {
  const phases = description.value?.phases ?? [];
  return phase.value === null || phases.indexOf(each) <= phases.indexOf(phase.value);
}

/** Which quantity is opened: that of the phase, or the chosen one, perhaps of one source token. */
export const opened = computed<{ phase: Phase; j: number | null }>(() => {
  const [name, j] = word("open").split(".");
  const known = name in NAMES && (description.value?.phases.includes(name as Phase) ?? false);
  return {
    phase: phase.value ?? (known ? (name as Phase) : plain.value ? "words" : "softmax"),
    j: j === undefined || !/^\d+$/.test(j) ? null : Number(j),
  };
});

export const open = (each: Phase, j: number | null = null): void =>
  set({ open: j === null ? each : `${each}.${j}`, phase: null });

export const weights = computed(() => (moment.value ? taken(moment.value.branch.weights, part.value) : []));

/** Scores belong to one head: there is no mean of them that would give the mean of the weights. */
export const energies = computed<(number | null)[] | null>(() => {
  const { layer, head } = part.value;
  const all = moment.value?.branch.energies;
  return all && layer !== null && head !== null ? (all[layer]?.[head] ?? null) : null;
});

/** The axis of scores: from the lowest to the highest of the sentence under this head, and always with zero. */
export const bounds = computed<[number, number]>(() => {
  const { layer, head } = part.value;
  if (layer === null || head === null) return [0, 1];
  const all = moments.value.flatMap(({ branch }) => branch.energies?.[layer]?.[head] ?? []);
  const finite = all.filter((energy): energy is number => energy !== null);
  return finite.length ? [Math.min(...finite, 0), Math.max(...finite, 0)] : [0, 1];
});

/** How long what attention brought back is; heads of a layer are brought back together. */
export const contextNorm = computed<number | null>(() => {
  const norms = moment.value?.branch.context_norms;
  return norms?.length ? (norms[part.value.layer ?? norms.length - 1] ?? null) : null;
});

/** What attention brought back, number by number, where it is the states themselves that are mixed. */
export const context = computed<number[] | null>(() => {
  const states = trace.value?.states;
  const itself = states && weights.value.length && description.value?.formulas.context === MIXTURE;
  return itself ? mixture(weights.value, states) : null;
});

/** The largest number of any state, so that colors mean the same for each. */
export const largest = computed(() =>
  (trace.value?.states ?? []).reduce((top, state) => state.reduce((most, each) => Math.max(most, Math.abs(each)), top), 0),
);

/** Which source token is looked at most. */
export const strongest = computed(() => weights.value.indexOf(Math.max(...weights.value)));

const FEW = 34; // rows that are shown whole …
const MANY = 24; // … and how many of more

/** Rows of the chart, in source order; of a long sentence those that are looked at most. */
export const rows = computed<number[]>(() => {
  const all = columns.value.map((_, j) => j);
  if (all.length <= FEW || word("all")) return all;
  const best = [...all].sort((a, b) => weights.value[b] - weights.value[a]).slice(0, MANY);
  return best.sort((a, b) => a - b);
});
