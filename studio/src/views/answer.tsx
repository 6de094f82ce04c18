// Answer: the passage with the answer's look upon it, and the question, while both are typed.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { link } from "../address";
import { predictAndTrace, type Traced } from "../api";
import { Ask } from "../ask";
import { top } from "../color";
import { Numbers } from "../components/numbers";
import { Scale } from "../components/scale";
import { Say, Token } from "../components/tokens";
import { Weighted } from "../components/weighted";
import { Examples } from "../examples";
import { follow, question } from "../session";
import { fixed, percent } from "../text";
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
  const looked = useSignal<number | null>(null);
  const tokens = trace.source_tokens;
  const best = trace.hypotheses[0];
  if (!best || !shape(trace).layers) return <p class="quiet">This model has no attention: its last state gives the answer.</p>;
  const rows = attention(trace, way(trace, best), { layer: null, head: null }).slice(0, Math.max(1, best.ids.length - 1)); // without EOS
  const weights = tokens.map((_, s) => rows.reduce((sum, row) => sum + row[s], 0) / rows.length);
  const end = tokens.findIndex((token) => ENDS.includes(token));
  const highest = top([[weights]]);
  const parts: [string, number, number][] = [
    ["Passage", 0, end],
    ["Question", end + 1, tokens.length - 1],
  ];
  return (
    <section class="attended">
      {parts.map(([name, first, last]) => (
        <div class="query" key={name}>
          <h2>{name}</h2>
          <Weighted
            label={`Weights on the ${name.toLowerCase()}`}
            tokens={tokens.slice(first, last)}
            weights={weights.slice(first, last)}
            top={highest}
            onLook={(at) => (looked.value = at === null ? null : first + at)}
          />
        </div>
      ))}
      <Scale top={highest} name="attention weight" />
      <p class="readout" role="status">
        {looked.value !== null && looked.value < tokens.length ? (
          <>
            <Token of={tokens[looked.value]} /> {fixed(weights[looked.value])}
          </>
        ) : (
          <span class="quiet">Point at a token to see its weight: the mean over the tokens of the answer.</span>
        )}{" "}
        <a href={link("step")}>Show how they are computed</a>
      </p>
      <Numbers
        caption="the weight of each token"
        corner="token"
        columns={[<>weight</>]}
        rows={tokens.map((head, j) => ({ head, cells: [weights[j]] }))}
      />
    </section>
  );
}
