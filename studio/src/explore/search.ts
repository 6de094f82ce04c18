// A search that the reader changes: how its answer begins, and how its attention is changed. All of it is in the address:
//
//     prefix=5.9.4          the answer begins with these tokens;  end=1: and ends after them
//     mask=2-3_0.*          source tokens 2, and 3 in every head of layer 0, get no attention
//     pin=4.2.800-4.3.50    at step 4 the weight on source token 2 is 0.800, on token 3 0.050
import { computed } from "@preact/signals";
import { set, word } from "../address";
import { post } from "../api";
import { part, parts as counted, read } from "../session";
import type { Part, Trace } from "../trace";

export interface Mask extends Part {
  source: number;
}

export interface Weight extends Part {
  step: number;
  source: number;
  weight: number;
}

export interface SearchChanges {
  prefix: number[];
  end: boolean;
  masks: Mask[];
  weights: Weight[];
}

const FINE = 1000; // weights are written in thousandths

function place(given: string | undefined): Part | null {
  if (given === undefined) return { layer: null, head: null };
  const found = /^(\d{1,4}|\*)\.(\d{1,4}|\*)$/.exec(given);
  const read = (each: string) => (each === "*" ? null : Number(each));
  return found && { layer: read(found[1]), head: read(found[2]) };
}

const placed = ({ layer, head }: Part): string => (layer === null && head === null ? "" : `_${layer ?? "*"}.${head ?? "*"}`);

const numbers = (given: string): number[] => given.split(".").filter(Boolean).map(Number).filter(Number.isSafeInteger);

/** The parts of a list in the address: some numbers and a place each. Invalid ones are left out. */
function parts(name: string, count: number): { of: number[]; at: Part }[] {
  return word(name)
    .split("-")
    .map((each) => each.split("_"))
    .map(([of, at]) => ({ of: numbers(of), at: place(at) }))
    .filter((each): each is { of: number[]; at: Part } => each.at !== null && each.of.length === count);
}

/** The changes in the address. */
export const changes = computed<SearchChanges>(() => ({
  prefix: numbers(word("prefix")),
  end: word("end") === "1",
  masks: parts("mask", 1).map(({ of: [source], at }) => ({ source, ...at })),
  weights: parts("pin", 3).map(({ of: [step, source, weight], at }) => ({ step, source, weight: Math.min(weight / FINE, 1), ...at })),
}));

export const isNothing = ({ prefix, end, masks, weights }: SearchChanges): boolean => !prefix.length && !end && !masks.length && !weights.length;
export const nothing = computed(() => isNothing(changes.value));

/** Change the search; what is not named stays. */
export function change(some: Partial<SearchChanges>): void {
  const { prefix, end, masks, weights } = { ...changes.peek(), ...some };
  set({
    prefix: prefix.join("."),
    end: end ? 1 : null,
    mask: masks.map((each) => `${each.source}${placed(each)}`).join("-"),
    pin: weights.map((each) => `${each.step}.${each.source}.${Math.round(each.weight * FINE)}${placed(each)}`).join("-"),
  });
}

export const NOTHING: SearchChanges = { prefix: [], end: false, masks: [], weights: [] };

/** For which layers and heads a new change holds: those that are looked at, or all; of one there is no choice. */
export const here = computed<Part>(() => ({
  layer: counted.value.layers > 1 ? part.value.layer : null,
  head: counted.value.heads > 1 ? part.value.head : null,
}));

export const samePart = (a: Part, b: Part): boolean => a.layer === b.layer && a.head === b.head;

type Intervention = ({ kind: "mask"; source: number } & Part) | ({ kind: "pin"; step: number; weights: Record<string, number> } & Part);

/** Weights of one step and place make one row: they are pinned together, so that none of them scales another. */
export function interventions({ masks, weights }: SearchChanges): Intervention[] {
  const rows = new Map<string, { step: number; weights: Record<string, number> } & Part>();
  for (const { step, source, weight, layer, head } of weights) {
    const key = `${step} ${layer} ${head}`;
    const row = rows.get(key) ?? { step, weights: {}, layer, head };
    row.weights[source] = weight;
    rows.set(key, row);
  }
  return [
    ...masks.map(({ source, layer, head }) => ({ kind: "mask" as const, source, layer, head })),
    ...[...rows.values()].map((row) => ({ kind: "pin" as const, ...row })),
  ];
}

export interface TraceRequest {
  model: string;
  text: string;
  beam: number;
  n_best: number;
  length?: number; // of what a language model adds
  changes: SearchChanges;
}

/** The sentence with these changes. */
export const explore = async ({ changes, ...request }: TraceRequest, signal?: AbortSignal): Promise<Trace> =>
  read(await post<Trace>("studio/trace", { ...request, prefix: changes.prefix, end: changes.end, interventions: interventions(changes) }, signal));
