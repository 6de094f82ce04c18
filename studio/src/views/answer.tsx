// Answer: the passage with the answer's look upon it, and the question, while both are typed.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { predictAndTrace, type Traced } from "../api";
import { Ask } from "../ask";
import { Numbers } from "../components/numbers";
import { Say } from "../components/tokens";
import { Attended } from "../components/weighted";
import { Examples } from "../examples";
import { follow, question } from "../session";
import { percent } from "../text";
import { attention, shape, way } from "../trace";

export function Answer(): JSX.Element {
  const found = useSignal<Traced | null>(null);
  useEffect(() => follow(question, predictAndTrace, (answer) => (found.value = answer)), []);
  return (
    <>
      <Ask />
      {found.value?.trace ? <Found found={found.value} /> : <Examples />}
    </>
  );
}

function Found({ found }: { found: Traced }): JSX.Element {
  const scores = found.trace.hypotheses[0]?.token_scores ?? [];
  const sure = Math.exp(scores.reduce((sum, each) => sum + each, 0));
  return (
    <article class="answer">
      <h2>Answer</h2>
      <p class="line verdict">
        <Say>{found.text || "none"}</Say>
      </p>
      <p class="quiet">Probability {percent(sure)}</p>
      <Looked found={found} />
    </article>
  );
}

const ENDS = ["⇥", "</s>"]; // what follows the passage

/** Passage and question, shaded by how much the whole answer, without its end, looks at each token. */
function Looked({ found: { trace } }: { found: Traced }): JSX.Element {
  const tokens = trace.source_tokens;
  const best = trace.hypotheses[0];
  if (!best || !shape(trace).layers) return <p class="quiet">This model has no attention: its last state gives the answer.</p>;
  const rows = attention(trace, way(trace, best), { layer: null, head: null }).slice(0, Math.max(1, best.ids.length - 1)); // without EOS
  const weights = tokens.map((_, s) => rows.reduce((sum, row) => sum + row[s], 0) / rows.length);
  const end = tokens.findIndex((token) => ENDS.includes(token));
  const parts: [string, number, number][] = [
    ["Passage", 0, end],
    ["Question", end + 1, tokens.length - 1],
  ];
  return (
    <Attended
      rows={parts.map(([name, first, last]) => ({
        heading: <h2>{name}</h2>,
        label: `Weights on the ${name.toLowerCase()}`,
        tokens: tokens.slice(first, last),
        weights: weights.slice(first, last),
      }))}
      hint="Point at a token to see its weight: the mean over the tokens of the answer."
    >
      <Numbers
        caption="the weight of each token"
        corner="token"
        columns={[<>weight</>]}
        rows={tokens.map((head, j) => ({ head, cells: [weights[j]] }))}
      />
    </Attended>
  );
}
