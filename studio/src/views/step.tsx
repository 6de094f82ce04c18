// Step: encoder states -> scores -> weights -> context -> candidates -> token, one step of the decoder at a time.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { set } from "../address";
import { Ask } from "../ask";
import { Diagram } from "../components/diagram";
import { Numbers } from "../components/numbers";
import { Rank } from "../components/rank";
import { Chip, Flow, Line, runsOn } from "../components/tokens";
import { Examples } from "../examples";
import { typing } from "../keys";
import { nameOf, type Plan } from "../model";
import { chosen, model, moments, parts, task, trace } from "../session";
import { capital, percent } from "../text";
import { Chart } from "../step/chart";
import { Glance } from "../step/heads";
import { columns, description, energies, moment, open, opened, phase, plain, reached, t, weights } from "../step/moment";
import { beating, key, playing, to, toggle } from "../step/playing";
import { Quantity } from "../step/quantity";
import { Words } from "../step/words";

export function Step(): JSX.Element {
  useEffect(() => {
    const stop = beating();
    const press = (event: KeyboardEvent) => {
      if (!typing(event) && moments.peek().length && key(event)) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => {
      stop();
      playing.value = false;
      removeEventListener("keydown", press);
    };
  }, []);
  return (
    <>
      <Ask />
      {moment.value && description.value ? <Stage plan={description.value} /> : <Examples />}
    </>
  );
}

function Stage({ plan }: { plan: Plan }): JSX.Element {
  return (
    <>
      <Answer />
      <Transport plan={plan} />
      {(trace.value?.hypotheses.length ?? 0) > 1 ? (
        <div class="bar">
          <Rank />
        </div>
      ) : null}
      <Glance />
      <div class="stage">
        <div>
          {plan.place === "alone" ? <p class="quiet">This model has no attention: no weights on earlier tokens to show.</p> : <Chart />}
          <StepNumbers />
          <p class="keys">
            <kbd>Space</kbd> plays or pauses. <kbd>←</kbd> <kbd>→</kbd> go to the previous or next step, with <kbd>Shift</kbd> to the
            previous or next phase, <kbd>Home</kbd> and <kbd>End</kbd> to the first or last step. Click a number to see its formula.
          </p>
        </div>
        <div class="aside">
          <Words />
          <Quantity />
          <figure>
            <Diagram
              place={plan.place}
              early={model.value?.settings.kind === "bahdanau" && model.value.settings.readout !== "current"}
              layers={parts.value.layers}
              reached={reached}
              open={opened.value.phase}
              onOpen={(each) => open(each)}
            />
            <figcaption>
              {plan.words} <span class="quiet">{plan.paper}</span>
            </figcaption>
          </figure>
        </div>
      </div>
    </>
  );
}

/** The tokens so far, the token of this step, those to come. */
function Answer(): JSX.Element {
  const hypothesis = chosen.value!;
  const label = capital(task.value.answer);
  const given = trace.value!.prompt_tokens ?? 0;
  const chip = (i: number, flowing = false) => (
    <Chip
      key={i}
      token={hypothesis.tokens[i]}
      flowing={flowing}
      current={i === t.value}
      faded={i > t.value}
      confidence={i < given ? undefined : Math.exp(hypothesis.token_scores[i])}
      copied={typeof hypothesis.copied?.[i] === "number"}
      label={`Step ${i + 1}: ${hypothesis.tokens[i]}, ${i < given ? "given" : percent(Math.exp(hypothesis.token_scores[i]))}${typeof hypothesis.copied?.[i] === "number" ? ", copied" : ""}`}
      onPick={() => to(i)}
    />
  );
  if (trace.value!.looks_back) return <Flow label={label} tokens={hypothesis.tokens} chip={chip} />;
  return (
    <Line label={label} close={runsOn(hypothesis.tokens)}>
      {hypothesis.tokens.map((_, i) => chip(i))}
    </Line>
  );
}

function Transport({ plan }: { plan: Plan }): JSX.Element {
  const last = moments.value.length - 1;
  return (
    <div class="transport">
      <button type="button" class="play" aria-label={playing.value ? "Pause" : "Play"} title="Space" onClick={toggle}>
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
          {playing.value ? <path d="M5 3h4v14H5z M11 3h4v14h-4z" /> : <path d="M5 2.5v15l12-7.5z" />}
        </svg>
      </button>
      <input
        type="range"
        min={0}
        max={last}
        value={t.value}
        aria-label="Step"
        aria-valuetext={`Step ${t.value + 1} of ${last + 1}: ${moment.value!.token}`}
        onInput={(event) => {
          playing.value = false;
          to(Number(event.currentTarget.value));
        }}
      />
      <span class="figures quiet">
        {t.value + 1} / {last + 1}
      </span>
      <ol class="phases" aria-label="Within the step">
        {plan.phases.map((each) => (
          <li key={each}>
            <button type="button" aria-pressed={phase.value === each} onClick={() => set({ phase: phase.value === each ? null : each, open: null })}>
              {nameOf(plan, each)}
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function StepNumbers(): JSX.Element {
  const tokens = columns.value;
  const none = plain.value;
  const kind = trace.value!.looks_back ? "earlier" : task.value.axes[0];
  return (
    <>
      {none ? null : (
        <Numbers
          caption={`score and weight of each ${kind} token in step ${t.value + 1}`}
          corner={kind}
          columns={["score", "weight"]}
          rows={tokens.map((head, j) => ({ head, cells: [energies.value ? energies.value[j] : "none (mean of heads)", weights.value[j]] }))}
        />
      )}
    </>
  );
}
