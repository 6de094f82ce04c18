// Compare: up to four models on one sentence, all at the same step; and how good models are by the length of the source.
import { computed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { number, set, word } from "../address";
import { Problem } from "../api";
import { top } from "../color";
import { BeamChoice, Sentence } from "../ask";
import { Numbers } from "../components/numbers";
import { Scrubber } from "../components/scrubber";
import { Chip, Flow, Line, runsOn, Say, Token } from "../components/tokens";
import { Examples } from "../examples";
import { Map } from "../explore/map";
import { Quality } from "../explore/quality";
import { explore, NOTHING } from "../explore/search";
import { typing } from "../keys";
import { beam, bounded, busy, follow, given, model, models, problem, search, task, text } from "../session";
import { capital, fixed, percent } from "../text";
import { attention, type Hypothesis, looked, shape, type Trace, way } from "../trace";

const MOST = 4;
const ALL = { layer: null, head: null };

/** A model's answer, or why there is none. */
type Found = { name: string; trace: Trace } | { name: string; problem: string };

/** Models of one task: an answer of another cannot be compared. */
const comparable = () => models.value.filter((each) => each.task === model.value?.task);

const chosen = computed(() => {
  const known = comparable().map(({ name }) => name);
  const chosen = word("with")
    .split(",")
    .filter((name) => known.includes(name));
  return chosen.length ? chosen.slice(0, MOST) : known.slice(0, MOST);
});

export function Compare(): JSX.Element {
  const found = useSignal<Found[] | null>(null);
  useEffect(
    () =>
      follow(
        () => (chosen.value.length && given.value ? { names: chosen.value, text: text.value, beam: beam.value, ...bounded() } : null),
        ({ names, ...request }, signal) => Promise.all(names.map((name) => one(name, request, signal))),
        (answer) => {
          found.value = answer;
        },
      ),
    [],
  );
  const last = Math.max(0, ...(found.value ?? []).map((answer) => ("trace" in answer ? answer.trace.hypotheses[0].ids.length - 1 : 0)));
  const first = Math.max(0, ...(found.value ?? []).map((answer) => ("trace" in answer ? (answer.trace.prompt_tokens ?? 0) : 0)));
  const step = Math.min(number("step") ?? first, last);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const to = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: last }[event.key];
      if (to === undefined || typing(event) || !found.peek()) return;
      set({ step: Math.min(Math.max(to, 0), last) });
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [step, last]);
  return (
    <>
      <Question />
      {found.value ? (
        <>
          <Scrubber title="Step" label="Step of all models" step={step} last={last} />
          <div class="models">
            {found.value.map((answer) => (
              <article key={answer.name}>
                <h2>{answer.name}</h2>
                {"trace" in answer ? (
                  <Model trace={answer.trace} name={answer.name} step={step} />
                ) : (
                  <p class="problem">{answer.problem}</p>
                )}
              </article>
            ))}
          </div>
          <AllNumbers answers={found.value} />
        </>
      ) : (
        <Examples />
      )}
      <Quality compared={chosen.value} />
    </>
  );
}

async function one(name: string, request: { text: string; beam: number; length?: number }, signal: AbortSignal): Promise<Found> {
  try {
    return { name, trace: await explore({ ...request, model: name, n_best: 1, changes: NOTHING }, signal) };
  } catch (error) {
    if (signal.aborted || !(error instanceof Problem)) throw error;
    return { name, problem: error.message }; // the other models may still answer
  }
}

function Question(): JSX.Element {
  const full = chosen.value.length === MOST;
  const toggle = (name: string) => {
    const now = chosen.peek();
    const next = now.includes(name) ? now.filter((each) => each !== name) : [...now, name];
    if (next.length) set({ with: next.join(",") });
  };
  return (
    <section class="ask" aria-label="Sentence">
      <Sentence />
      <div class="settings">
        <fieldset class="field several">
          <legend>Models, up to {MOST}</legend>
          {comparable().map(({ name }) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen.value.includes(name)}
                disabled={full && !chosen.value.includes(name)}
                onChange={() => toggle(name)}
              />
              {name}
            </label>
          ))}
        </fieldset>
        {search.value === "beam" ? <BeamChoice /> : null}
        <span class={busy.value ? "busy on" : "busy"} role="status">
          {busy.value ? task.value.busy : ""}
        </span>
      </div>
      {problem.value ? (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      ) : null}
    </section>
  );
}

/** The tokens of an answer: a text, or one after the other. */
function Answer({ label, trace, chip }: { label: string; trace: Trace; chip: (t: number, flowing: boolean) => JSX.Element }): JSX.Element {
  const { tokens } = trace.hypotheses[0];
  if (trace.looks_back) return <Flow label={label} tokens={tokens} chip={chip} />;
  return (
    <Line label={label} close={runsOn(tokens)}>
      {tokens.map((_, t) => chip(t, false))}
    </Line>
  );
}

function Model({ trace, name, step }: { trace: Trace; name: string; step: number }): JSX.Element {
  const hypothesis = trace.hypotheses[0];
  const moments = way(trace, hypothesis);
  const now = moments[step];
  const rows = attention(trace, moments, ALL); // as the model itself reads them: some explain a token one step later
  const attentive = shape(trace).layers > 0 && task.value.maps;
  return (
    <>
      <Answer
        label={`${capital(task.value.answer)} of ${name}`}
        trace={trace}
        chip={(t, flowing) => (
          <Chip
            key={t}
            token={hypothesis.tokens[t]}
            flowing={flowing}
            current={t === step}
            faded={t > step}
            confidence={Math.exp(hypothesis.token_scores[t])}
            label={`Step ${t + 1}: ${hypothesis.tokens[t]}, ${percent(Math.exp(hypothesis.token_scores[t]))}`}
            onPick={() => set({ step: t })}
          />
        )}
      />
      <p class="readout">
        {now ? (
          <>
            <Token of={now.token} /> {percent(Math.exp(now.logProbability))}
            {attentive ? <Looks source={looked(trace, hypothesis)} weights={rows[step]} /> : null}
          </>
        ) : (
          <span class="quiet">
            finished: <Say>{hypothesis.text}</Say>
          </span>
        )}
        <span class="figures quiet end"> log-probability {fixed(total(hypothesis), 2)}</span>
      </p>
      {attentive ? (
        <Map
          label={`attention weights of ${name}${shape(trace).layers * shape(trace).heads > 1 ? ", the mean of all heads" : ""}`}
          answer={hypothesis.tokens}
          source={looked(trace, hypothesis)}
          rows={rows}
          step={step}
          top={top([rows])}
        />
      ) : (
        <p class="quiet">{task.value.maps ? "This model has no attention." : ""}</p>
      )}
    </>
  );
}

const total = (hypothesis: Hypothesis): number => hypothesis.token_scores.reduce((sum, each) => sum + each, 0);

function Looks({ source, weights }: { source: string[]; weights: number[] }): JSX.Element {
  const best = weights
    .map((weight, s) => ({ weight, token: source[s] }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3)
    .filter(({ weight }) => weight >= 0.05);
  return (
    <>
      <span class="quiet">{best.length ? " attends to" : " attends to many tokens"}</span>
      {best.map(({ token, weight }, i) => (
        <span key={i}>
          {" "}
          <Token of={token} /> <span class="quiet">{fixed(weight, 2)}</span>
        </span>
      ))}
    </>
  );
}

function AllNumbers({ answers }: { answers: Found[] }): JSX.Element {
  const traced = answers.filter((answer): answer is { name: string; trace: Trace } => "trace" in answer);
  const steps = Math.max(0, ...traced.map(({ trace }) => trace.hypotheses[0].ids.length));
  return (
    <Numbers
      caption="the token of each model at each step, and its probability"
      corner="step"
      columns={traced.flatMap(({ name }) => [<>{name}</>, <>probability</>])}
      rows={Array.from({ length: steps }, (_, t) => ({
        head: <>{t + 1}</>,
        cells: traced.flatMap(
          ({
            trace: {
              hypotheses: [hypothesis],
            },
          }) => [hypothesis.tokens[t] ?? <>–</>, t < hypothesis.ids.length ? <>{percent(Math.exp(hypothesis.token_scores[t]))}</> : <>–</>],
        ),
      }))}
    />
  );
}
