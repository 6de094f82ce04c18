// A trace as the tree of its search: a column for each step with its candidates, best first.
import type { Fate, Hypothesis, Trace } from "../trace";

export interface Node {
  t: number; // the step that generated it; -1 for the root
  row: number; // its place in the column
  id: number;
  token: string;
  logProbability: number; // of the token
  sum: number; // log-probability of everything up to it
  score: number; // the same divided by the length penalty; of a finished hypothesis what the list shows
  fate: Fate | "passed"; // passed: a candidate that greedy search never considered
  given: boolean; // part of the required beginning
  parent: Node | null;
  ids: number[]; // from the beginning to here
}

const PASSED = 4; // of the candidates that greedy search passes by, so many are shown

export function tree(trace: Trace, prefix: number): Node[][] {
  const root: Node = { t: -1, row: 0, id: -1, token: "", logProbability: 0, sum: 0, score: 0, fate: "kept", given: false, parent: null, ids: [] };
  const greedy = trace.search.kind === "greedy";
  const scores = new Map(trace.hypotheses.map(({ ids, score }) => [String(ids), score]));
  let open = [root];
  return trace.steps.map(({ branches, continuations }, t) => {
    const column: Node[] = [];
    const add = (parent: Node, id: number, token: string, logProbability: number | null, fate: Node["fate"]) => {
      const p = logProbability ?? -Infinity;
      const node = {
        t,
        row: column.length,
        id,
        token,
        logProbability: p,
        sum: parent.sum + p,
        score: scores.get(String([...parent.ids, id])) ?? (parent.sum + p) / penalty(trace.search, t + 1),
        fate,
        given: t < prefix,
        parent,
        ids: [...parent.ids, id],
      };
      column.push(node);
      return node;
    };
    const kept: Node[] = [];
    for (const each of continuations) {
      const node = add(open[each.branch], each.id, each.token, each.log_probability, each.fate);
      if (each.fate === "kept") kept.push(node);
    }
    if (greedy) {
      const next = continuations[0]?.id;
      const others = branches[0].candidates.filter(({ id }) => id !== next).slice(0, PASSED);
      for (const each of others) add(open[0], each.id, each.token, each.log_probability, "passed");
    }
    open = kept;
    return column;
  });
}

/** The settings of a search: the length penalty is that of Wu et al. 2016, equation 14, or a power of the length. */
type Search = Record<string, unknown>;

const long = (search: Search, tokens: number): number => (search.penalty === "power" ? tokens : (5 + tokens) / 6);

/** What the log-probability of so many tokens is divided by. */
const penalty = (search: Search, tokens: number): number => long(search, tokens) ** Number(search.alpha ?? 0);

/** What a score is, in words. */
export function scoring(search: Search): string {
  const coverage = search.beta ? `, and of a finished answer plus the coverage penalty (beta ${search.beta})` : "";
  if (!search.alpha) return `Score: log-probability${coverage}; higher is better.`;
  const formula = `${search.penalty === "power" ? "n" : "((5 + n) / 6)"}^${search.alpha}`;
  return `Score: log-probability divided by the length penalty ${formula} for n tokens${coverage}; higher is better.`;
}

/** The nodes of a hypothesis, from its first token to its last. */
export function path(columns: Node[][], hypothesis: Hypothesis): Node[] {
  const found: Node[] = [];
  let parent: Node | null = null;
  for (const [t, id] of hypothesis.ids.entries()) {
    const node: Node | undefined = columns[t]?.find((each) => each.id === id && (t === 0 || each.parent === parent));
    if (!node) break;
    found.push(node);
    parent = node;
  }
  return found;
}

/** Where an arrow key leads from a node; itself where there is nothing in that direction. */
export function neighbor(columns: Node[][], from: Node, key: string): Node {
  const column = columns[from.t];
  if (key === "ArrowUp") return column[Math.max(from.row - 1, 0)];
  if (key === "ArrowDown") return column[Math.min(from.row + 1, column.length - 1)];
  if (key === "ArrowLeft") return from.parent && from.parent.t >= 0 ? from.parent : from;
  return columns[from.t + 1]?.find((each) => each.parent === from) ?? from;
}

export const FATES: Record<Node["fate"], string> = {
  kept: "kept",
  finished: "finished",
  cut: "cut at the length limit",
  pruned: "pruned",
  passed: "not chosen",
};
