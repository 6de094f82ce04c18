// A search, step by step, as `Trace.as_json()` writes it, and what the views read from it.
// Axes: L attention layers, N heads, S source tokens, T target tokens, both with their end mark.

export type Fate = "kept" | "finished" | "pruned" | "cut";

export interface Candidate {
  id: number;
  token: string;
  log_probability: number | null;
}

export interface Branch {
  parent: number | null;
  id: number;
  token: string;
  score: number | null;
  energies: (number | null)[][][] | null; // (L, N, S)
  weights: number[][][]; // (L, N, S)
  context_norms: number[] | null; // (L,)
  candidates: Candidate[];
  p_gen?: number | null; // of a model that copies: the probability that the next token is one of the vocabulary
}

export interface Continuation extends Candidate {
  branch: number;
  score: number | null;
  fate: Fate;
}

export interface Hypothesis {
  text: string;
  ids: number[];
  tokens: string[];
  words?: number[]; // the word of each token, -1 for none
  token_scores: number[];
  copied?: (number | null)[]; // of a model that copies: the source token that each is a copy of, or null
  score: number;
  finished: boolean;
  path: number[];
}

/** The first ids are controls: nobody can go on with one but the end. */
export const END = 3;
export const sayable = (id: number): boolean => id > END;

export interface Trace {
  source: string;
  source_tokens: string[];
  source_words?: number[];
  search: Record<string, unknown>;
  offset: number;
  looks_back?: boolean; // attention is over BOS and the tokens before: row t has t + 1 weights
  prompt_tokens?: number; // tokens at the beginning that were given
  states?: number[][] | null; // (S, D) the encoder's; none of several models at once
  steps: { branches: Branch[]; continuations: Continuation[] }[];
  hypotheses: Hypothesis[];
}

/** What attention looks at: the source, or what the hypothesis itself says before each step. */
export const looked = (trace: Trace, { tokens }: Hypothesis): string[] =>
  trace.looks_back ? [trace.source_tokens[0], ...tokens.slice(0, -1)] : trace.source_tokens;

/** The word of each of them. */
export const lookedWords = (trace: Trace, { words }: Hypothesis): number[] | undefined =>
  trace.looks_back ? words && [-1, ...words.slice(0, -1)] : trace.source_words;

const IMPOSSIBLE = -1000; // log-probability of what the model rules out, as a control among tags

/** Without candidates that are impossible; and without the end of an answer that cannot go on, which is no decision. */
export function tidied(trace: Trace, ends: boolean): Trace {
  const possible = ({ log_probability: p }: { log_probability: number | null }) => p !== null && p > IMPOSSIBLE;
  const steps = trace.steps.map(({ branches, continuations }) => ({
    branches: branches.map((branch) => ({ ...branch, candidates: branch.candidates.filter(possible) })),
    continuations: continuations.filter((each) => each.fate !== "pruned" || possible(each)),
  }));
  if (ends) return { ...trace, steps };
  const hypotheses = trace.hypotheses.map((one) => (one.ids.length > 1 && one.ids.at(-1) === END && one.token_scores.at(-1)! > -1e-4 ? unended(one) : one));
  const last = Math.max(...hypotheses.map(({ ids }) => ids.length));
  return { ...trace, steps: steps.slice(0, last), hypotheses };
}

const unended = (one: Hypothesis): Hypothesis => ({
  ...one,
  ids: one.ids.slice(0, -1),
  tokens: one.tokens.slice(0, -1),
  words: one.words?.slice(0, -1),
  token_scores: one.token_scores.slice(0, -1),
  copied: one.copied?.slice(0, -1),
  path: one.path.slice(0, -1),
});

/** One step on the way of one hypothesis. */
export interface Moment {
  branch: Branch;
  id: number;
  token: string; // what was generated
  logProbability: number;
  copied?: number | null; // the source token that it is a copy of; null: of none; undefined: nothing is copied
}

/** The steps of one hypothesis, from its first token to its last. */
export function way(trace: Trace, hypothesis: Hypothesis): Moment[] {
  return hypothesis.path.map((place, t) => ({
    branch: trace.steps[t].branches[place],
    id: hypothesis.ids[t],
    token: hypothesis.tokens[t],
    logProbability: hypothesis.token_scores[t],
    copied: hypothesis.copied?.[t],
  }));
}

/** Which of the layers and heads: a number, or null for the mean over all. */
export interface Part {
  layer: number | null;
  head: number | null;
}

/** (L, N, S) -> (S): one head, or the mean. */
export function taken(weights: number[][][], { layer, head }: Part): number[] {
  const layers = layer === null || !weights[layer] ? weights : [weights[layer]];
  const rows = layers.flatMap((heads) => (head === null || !heads[head] ? heads : [heads[head]]));
  if (rows.length === 1) return rows[0];
  return (rows[0] ?? []).map((_, s) => rows.reduce((sum, row) => sum + row[s], 0) / rows.length);
}

/** (T, S): what a hypothesis looked at; row t explains token t where the model's offset is applied. */
export function attention(trace: Trace, moments: Moment[], part: Part, explained = true): number[][] {
  const none = (trace.looks_back ? moments : trace.source_tokens).map(() => 0);
  const rows = moments.map(({ branch }) => padded(taken(branch.weights, part), none));
  if (!explained || !trace.offset) return rows;
  // nothing explains the last ones, as no token follows them
  return rows.map((_, t) => rows[t + trace.offset] ?? none);
}

/** As long as all rows are: who looks back does not look ahead. */
const padded = (row: number[], none: number[]): number[] => (row.length < none.length ? [...row, ...none.slice(row.length)] : row);

/** (D): the states mixed by weights. */
export const mixture = (weights: number[], states: number[][]): number[] =>
  states[0].map((_, d) => states.reduce((sum, state, j) => sum + weights[j] * state[d], 0));

/** How long a vector is. */
export const length = (vector: number[]): number => Math.hypot(...vector);

/** How many layers and heads there are; no layers for a model without attention. */
export function shape(trace: Trace): { layers: number; heads: number } {
  const weights = trace.steps[0]?.branches[0]?.weights ?? [];
  return { layers: weights.length, heads: weights[0]?.length ?? 0 };
}

export interface Words {
  labels: string[];
  of: number[]; // the word of each token, -1 for none
}

/** Tokens as words, by the word that each belongs to. */
export function words(tokens: string[], of: number[]): Words {
  const labels: string[] = [];
  tokens.forEach((token, i) => {
    if (of[i] >= 0) labels[of[i]] = (labels[of[i]] ?? "") + token.replace(/^▁/, "");
  });
  return { labels, of };
}

/** Attention between words: pieces of a source word are added, pieces of a target word averaged. */
export function merged(rows: number[][], source: Words, target: Words): number[][] {
  const counts = target.labels.map((_, w) => target.of.filter((each) => each === w).length || 1);
  const sums = target.labels.map(() => source.labels.map(() => 0));
  rows.forEach((row, t) => {
    const to = target.of[t];
    if (to >= 0) row.forEach((weight, s) => source.of[s] >= 0 && (sums[to][source.of[s]] += weight / counts[to]));
  });
  return sums;
}
