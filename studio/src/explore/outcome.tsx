// The translation without and with the changes, side by side, with differences marked and the attention of both.
import type { JSX } from "preact";
import { set } from "../address";
import { top } from "../color";
import { Numbers } from "../components/numbers";
import { Flow, Line, runsOn, Say, Token, written } from "../components/tokens";
import { task } from "../session";
import { fixed, percent, visible } from "../text";
import { attention, type Hypothesis, looked, type Trace, way } from "../trace";
import type { Pair } from "../views/whatif";
import { difference } from "./difference";
import { Map } from "./map";
import { here, nothing, changes } from "./search";

export function Outcome({ pair, step }: { pair: Pair; step: number }): JSX.Element {
  const [old, now] = [pair.alone.hypotheses[0], pair.changed.hypotheses[0]];
  const { gone, come, first } = difference(old.ids, now.ids);
  const given = changes.value.prefix.length + (changes.value.end ? 1 : 0);
  const [before, after] = [pair.alone, pair.changed].map((trace) => attention(trace, way(trace, trace.hypotheses[0]), here.value, false));
  const both = { step, top: top([before, after]) };
  return (
    <section class="outcome">
      <div class="versions">
        <Version name="Unchanged" hypothesis={old} marked={gone} mark="gone" given={0} rows={before} trace={pair.alone} {...both} />
        <Version name="Changed" hypothesis={now} marked={come} mark="come" given={given} rows={after} trace={pair.changed} {...both} />
      </div>
      <p class="readout" role="status">
        {nothing.value ? (
          <span class="quiet">Both are the same, because nothing is changed yet.</span>
        ) : first < 0 ? (
          `The ${task.value.answer} is the same.`
        ) : (
          `They differ from step ${first + 1} on.`
        )}
        {nothing.value || first < 0 ? null : (
          <span class="quiet">
            {" "}
            Log-probability of the whole {task.value.answer}: {fixed(sum(old), 2)} before, {fixed(sum(now), 2)} after.
          </span>
        )}
      </p>
      <Numbers
        caption="the token of each step and its probability, unchanged and changed"
        corner="step"
        columns={[<>unchanged</>, <>probability</>, <>changed</>, <>probability</>]}
        rows={Array.from({ length: Math.max(old.ids.length, now.ids.length) }, (_, t) => ({
          head: String(t + 1),
          cells: [old, now].flatMap((one) => [
            one.tokens[t] ?? <>–</>,
            t < one.ids.length ? <>{percent(Math.exp(one.token_scores[t]))}</> : <>–</>,
          ]),
        }))}
      />
    </section>
  );
}

const sum = (hypothesis: Hypothesis): number => hypothesis.token_scores.reduce((total, each) => total + each, 0);

interface VersionProps {
  name: string;
  hypothesis: Hypothesis;
  marked: Set<number>;
  mark: "gone" | "come";
  given: number; // its first tokens that are forced
  rows: number[][]; // (T, S)
  step: number;
  trace: Trace;
  top: number;
}

function Version({ name, hypothesis, marked, mark, given, rows, step, trace, top }: VersionProps): JSX.Element {
  const spoken = mark === "gone" ? "only without the changes" : "only with the changes";
  const of = task.value.paired ? trace.source_tokens : null;
  const chip = (t: number, flowing: boolean) => {
    const token = hypothesis.tokens[t];
    return (
      <button
        type="button"
        key={t}
        class={["chip", of && "of", t === step && "current", t < given && "forced", marked.has(t) && mark, /^<.*>$/.test(token) && "control"]
          .filter(Boolean)
          .join(" ")}
        aria-label={`Step ${t + 1}: ${of ? `${visible(of[t])} ` : ""}${visible(token)}, ${percent(Math.exp(hypothesis.token_scores[t]))}${marked.has(t) ? `, ${spoken}` : ""}${t < given ? ", forced" : ""}`}
        aria-current={t === step ? "step" : undefined}
        onClick={() => set({ step: t })}
      >
        {of ? (
          <span class="whose">
            <Token of={of[t]} />
          </span>
        ) : null}
        {flowing ? <Say>{written(token)}</Say> : <Token of={token} />}
      </button>
    );
  };
  return (
    <article>
      <h2>{name}</h2>
      {trace.looks_back ? (
        <Flow label={name} tokens={hypothesis.tokens} chip={chip} />
      ) : (
        <Line label={name} close={!of && runsOn(hypothesis.tokens)}>
          {hypothesis.tokens.map((_, t) => chip(t, false))}
        </Line>
      )}
      {rows[0]?.length && task.value.maps ? (
        <Map label={`attention weights, ${name.toLowerCase()}`} answer={hypothesis.tokens} source={looked(trace, hypothesis)} rows={rows} step={step} top={top} />
      ) : null}
    </article>
  );
}
