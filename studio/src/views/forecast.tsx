// Forecast: the fan of a series, and for every step to come the past values that it looks at.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { number, set, word } from "../address";
import { forecast, type Forecast as Found, type ForecastRequest, type Model } from "../api";
import { ModelChoice } from "../ask";
import { top } from "../color";
import { Fan, shortly } from "../components/fan";
import { Numbers } from "../components/numbers";
import { Scale } from "../components/scale";
import { Say } from "../components/tokens";
import { busy, follow, model, problem, task } from "../session";
import { percent } from "../text";

const LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9];
const MOST = 1000; // steps of a horizon
const NAMED = 3; // past values that the readout names

const horizon = (): number => Math.min(Math.max(number("horizon") ?? model.value?.horizon ?? 1, 1), MOST);

function question(): ForecastRequest | null {
  if (!model.value) return null;
  const series = word("series") || model.value.ids?.[0];
  return { model: model.value.name, series, horizon: horizon(), quantiles: LEVELS, seed: number("seed") ?? 1, attention: true };
}

export function Forecast(): JSX.Element {
  const found = useSignal<Found | null>(null);
  useEffect(() => follow(question, forecast, (answer) => (found.value = answer)), []);
  if (!model.value) return <p class="empty">{problem.value || task.value.hint}</p>;
  return (
    <>
      <Settings model={model.value} />
      {problem.value ? <p class="problem" role="alert">{problem.value}</p> : null}
      {found.value ? <Drawn found={found.value} season={model.value.season ?? 1} /> : null}
    </>
  );
}

function Settings({ model }: { model: Model }): JSX.Element {
  const ids = model.ids ?? [];
  const chosen = word("series") || ids[0];
  const listed = ids.includes(chosen) ? ids : [chosen, ...ids];
  const many = (model.series ?? 0) > ids.length;
  return (
    <section class="ask" aria-label="Series">
      <div class="settings">
        <ModelChoice />
        <label class="field" title={many ? `The first ${ids.length} of ${model.series}; the address names any: series=…` : undefined}>
          <span>Series</span>
          <select value={chosen} onChange={(event) => set({ series: event.currentTarget.value, step: null })}>
            {listed.map((id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Horizon</span>
          <input type="number" min={1} max={MOST} value={horizon()} onChange={(event) => set({ horizon: event.currentTarget.value, step: null })} />
        </label>
        <span class={busy.value ? "busy on" : "busy"} role="status">
          {busy.value ? task.value.busy : ""}
        </span>
      </div>
    </section>
  );
}

function Drawn({ found, season }: { found: Found; season: number }): JSX.Element {
  const q = (level: number) => found.quantiles[String(level)];
  const given = number("step");
  const at = given !== null && given < found.time.length ? given : null;
  const attends = (found.attention[0]?.length ?? 0) > 0;
  const mean = attends ? found.past.value.map((_, s) => found.attention.reduce((sum, row) => sum + row[s], 0) / found.attention.length) : [];
  const weights = !attends ? [] : at === null ? mean : found.attention[at];
  const highest = top([attends ? [weights] : [[]]]);
  return (
    <article class="answer forecast">
      <h2>
        Forecast of <Say>{found.series}</Say>
      </h2>
      <Fan
        label={`Forecast of ${found.series}`}
        past={found.past.value}
        times={[...found.past.time, ...found.time]}
        median={q(0.5)}
        bands={[
          { low: q(0.1), high: q(0.9), share: 0.8 },
          { low: q(0.25), high: q(0.75), share: 0.5 },
        ]}
        weights={weights}
        top={highest}
        season={season}
        at={at}
        onAt={(step) => set({ step })}
      />
      <p class="legend quiet small">
        The line is the median of 100 paths; half of them are in the dark band, 80 % in the light one.{" "}
        {attends && season > 1 && at !== null ? "Triangles mark the same place in earlier seasons." : ""}
      </p>
      {attends ? <Scale top={highest} name={at === null ? "attention weight, mean over the horizon" : "attention weight"} /> : null}
      <p class="readout" role="status">
        {at === null ? (
          <span class="quiet">
            {attends
              ? "Point at a step of the forecast, tap it or move to it with the arrow keys, to see the past values it looks at."
              : "This model has no attention: the state of its cells gives the forecast."}
          </span>
        ) : (
          <>
            <b>{shortly(found.time[at])}</b>: {figure(q(0.5)[at])}, 80 % of the paths from {figure(q(0.1)[at])} to {figure(q(0.9)[at])}
            {attends ? <Looks found={found} weights={weights} /> : null}
          </>
        )}
      </p>
      <Numbers
        caption="the forecast"
        corner="time"
        columns={LEVELS.map((level) => (
          <>{percent(level)}</>
        ))}
        rows={found.time.map((time, t) => ({ head: <>{shortly(time)}</>, cells: LEVELS.map((level) => <>{figure(q(level)[t])}</>) }))}
      />
      {attends ? (
        <Numbers
          caption={at === null ? "the mean weight of each past value" : `the weights of ${shortly(found.time[at])}`}
          corner="time"
          columns={[<>value</>, <>weight</>]}
          rows={found.past.time.map((time, s) => ({ head: <>{shortly(time)}</>, cells: [<>{found.past.value[s] === null ? "missing" : figure(found.past.value[s])}</>, weights[s]] }))}
        />
      ) : null}
    </article>
  );
}

/** The past values with the largest weights. */
function Looks({ found, weights }: { found: Found; weights: number[] }): JSX.Element {
  const most = weights
    .map((weight, s) => ({ weight, s }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, NAMED);
  return (
    <span>
      {". It looks most at "}
      {most.map(({ weight, s }, i) => (
        <span key={s}>
          {i ? (i === most.length - 1 ? " and " : ", ") : ""}
          {shortly(found.past.time[s])} <span class="quiet">({percent(weight)})</span>
        </span>
      ))}
      .
    </span>
  );
}

const figure = (value: number): string => value.toLocaleString("en", { maximumSignificantDigits: 5 }).replace("-", "−");
