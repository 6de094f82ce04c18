// Classify: the probability of every label, and the words that the model attends to, while a text is typed.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { set, word } from "../address";
import { predictAndTrace, type Traced } from "../api";
import { Ask } from "../ask";
import { Numbers } from "../components/numbers";
import { Say, Token } from "../components/tokens";
import { Attended } from "../components/weighted";
import { Examples } from "../examples";
import { follow, question } from "../session";
import { fixed, percent, width } from "../text";
import { words } from "../trace";

const FEW = 10; // labels that are shown at first

export function Classify(): JSX.Element {
  const found = useSignal<Traced | null>(null);
  useEffect(() => follow(question, predictAndTrace, (answer) => (found.value = answer)), []);
  return (
    <>
      <Ask />
      {found.value?.trace ? <Label found={found.value} /> : <Examples />}
    </>
  );
}

function Label({ found }: { found: Traced }): JSX.Element {
  const listed = Object.entries(found.probabilities ?? {});
  return (
    <article class="answer">
      <h2>Label</h2>
      <p class="line verdict">
        <Say>{found.text || "none"}</Say>
      </p>
      <Queries found={found} />
      <ByWord found={found} />
      <Bars listed={listed} chosen={found.text} />
    </article>
  );
}

/** A bar for each label, from zero to its probability. */
function Bars({ listed, chosen }: { listed: [string, number][]; chosen: string }): JSX.Element | null {
  if (!listed.length) return null;
  const all = word("labels") === "all";
  const shown = all ? listed : listed.slice(0, FEW);
  const names = chosen.split(",");
  return (
    <section>
      <h2 id="labels">Probability of each label</h2>
      <ol class="bars" aria-labelledby="labels" style={{ "--label": `${Math.min(14, Math.max(3, ...shown.map(([label]) => width(label))))}ch` }}>
        {shown.map(([label, p]) => (
          <li key={label} class={names.includes(label) ? "chosen" : undefined}>
            <span class="what">
              <Say>{label}</Say>
            </span>
            <span class="gauge" aria-hidden="true">
              <i style={{ width: `${p * 100}%` }} />
            </span>
            <span class="figure">{percent(p)}</span>
          </li>
        ))}
        <li class="axis small" aria-hidden="true">
          <span />
          <span class="ends">
            <span>0</span>
            <span>50 %</span>
            <span>100 %</span>
          </span>
        </li>
      </ol>
      {listed.length > FEW ? (
        <p class="more">
          {all ? `All ${listed.length} labels. ` : `The ${FEW} most probable of ${listed.length} labels. `}
          <button type="button" class="plain" onClick={() => set({ labels: all ? null : "all" })}>
            {all ? "Show fewer" : "Show all"}
          </button>
        </p>
      ) : null}
      <Numbers
        caption="the probability of each label"
        corner="label"
        columns={[<>probability</>]}
        digits={6}
        rows={listed.map(([label, p]) => ({ head: <Say>{label}</Say>, cells: [p] }))}
      />
    </section>
  );
}

const MOST = 6; // words that are listed

/** The words with the largest weights, of all queries together. */
function ByWord({ found: { trace } }: { found: Traced }): JSX.Element | null {
  const queries = trace.steps[0].branches[0].weights.flat(); // (queries, S)
  const { labels, of } = words(trace.source_tokens, trace.source_words ?? []);
  if (!queries.length || labels.length < 2) return null;
  const weight = (w: number) => queries.reduce((sum, row) => sum + row.reduce((all, each, s) => (of[s] === w ? all + each : all), 0), 0) / queries.length;
  const ranked = labels.map((label, w) => ({ label, weight: weight(w) })).sort((a, b) => b.weight - a.weight);
  const shown = ranked.slice(0, MOST);
  return (
    <section>
      <h2 id="by-word">Words by weight</h2>
      <ol class="bars by-word" aria-labelledby="by-word" style={{ "--label": `${Math.min(14, Math.max(3, ...shown.map(({ label }) => width(label))))}ch` }}>
        {shown.map(({ label, weight }, i) => (
          <li key={i}>
            <span class="what">
              <Token of={label} />
            </span>
            <span class="gauge" aria-hidden="true">
              <i style={{ width: `${weight * 100}%` }} />
            </span>
            <span class="figure">{fixed(weight)}</span>
          </li>
        ))}
      </ol>
      {ranked.length > MOST ? (
        <p class="quiet small">
          The {MOST} words with the largest weights of {ranked.length}; the weight of a word is the sum over its tokens{queries.length > 1 ? ", averaged over the queries" : ""}.
        </p>
      ) : null}
    </section>
  );
}

/** The text, shaded by the weights of each query. */
function Queries({ found }: { found: Traced }): JSX.Element {
  const queries = found.trace.steps[0].branches[0].weights.flat(); // (queries, S)
  if (!queries.length) return <p class="quiet">This model has no attention: one state of the text gives the label.</p>;
  const several = queries.length > 1;
  const tokens = found.trace.source_tokens;
  const unseen = queries.every((row) => row[tokens.length - 1] === 0) ? 1 : 0; // the end mark, where it is never attended to
  const shown = tokens.slice(0, tokens.length - unseen);
  return (
    <Attended
      title={several ? "Weights of each query on the text" : "Weights on the text"}
      rows={queries.map((weights, q) => ({
        heading: several ? <span class="quiet small">Query {q + 1}</span> : null,
        label: several ? `Weights of query ${q + 1}` : "Weights on the text",
        tokens: shown,
        weights,
        source: several ? `query ${q + 1}` : undefined,
      }))}
      hint="Point at a token to see its weight. The weights of a query add up to one."
    >
      <Numbers
        caption="the weight of each token"
        corner="token"
        columns={queries.map((_, q) => (
          <>{several ? `query ${q + 1}` : "weight"}</>
        ))}
        rows={shown.map((head, j) => ({ head, cells: queries.map((row) => row[j]) }))}
      />
    </Attended>
  );
}
