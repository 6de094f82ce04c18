// Train: the curves of a run, live while it goes on, and what its checkpoints make of a sentence.
import { computed, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { set, word } from "../address";
import { get, Problem, type Prediction } from "../api";
import { Ask } from "../ask";
import { type Curve, Curves } from "../components/curves";
import { type Cell, Matrix } from "../components/matrix";
import { Say } from "../components/tokens";
import { heat } from "../color";
import { model, models, problem, text } from "../session";

interface Run {
  name: string;
  model: boolean;
  figures: boolean;
  quiet: number | null; // seconds since it last wrote anything
  checkpoints: number[];
}

type Row = Record<string, number>;

const runs = signal<Run[]>([]);
const rows = signal<Row[]>([]);
const samples = signal<Map<string, Prediction>>(new Map()); // kept when their checkpoint is replaced by a newer one
const run = computed(() => runs.value.find(({ name }) => name === word("run")) ?? runs.value.find(({ name }) => name === model.value?.name) ?? runs.value[0] ?? null);
const named = computed(() => run.value?.name ?? "");
const numbers = computed(() => models.value.find(({ name }) => name === named.value)?.task === "forecasting"); // whether it learns from numbers

const BEAT = 2000; // ms between two looks at a run that goes on …
const REST = 10_000; // … and at one that does not
const OVER = 600; // seconds without a word after which a run is taken to be over

export function Train(): JSX.Element {
  useEffect(watching, []);
  useEffect(() => figures(named.value), [named.value]);
  useEffect(() => {
    if (run.value && !numbers.value) void sampled(run.value, text.value);
  }, [run.value, text.value]);
  if (!runs.value.length) return <p class="empty">{problem.value || "There is no run to show. Start the studio with: regarde studio RUN"}</p>;
  return (
    <>
      <div class="bar">
        <label class="field">
          <span>Run</span>
          <select value={named.value} onChange={(event) => set({ run: event.currentTarget.value })}>
            {runs.value.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span class="quiet" role="status">
          {standing()}
        </span>
      </div>
      <Story />
      {numbers.value ? null : <Samples />}
      <Pace />
    </>
  );
}

function standing(): string {
  const last = rows.value.at(-1)?.step;
  const reached = last === undefined ? "no records yet" : `step ${last.toLocaleString("en")}`;
  const quiet = run.value?.quiet ?? Infinity;
  return quiet < OVER ? `${reached}, last record ${quiet} s ago` : reached;
}

/** Look at the list of runs again and again; returns how to stop. */
function watching(): () => void {
  let timer = 0;
  const look = async () => {
    try {
      runs.value = (await get<{ runs: Run[] }>("studio/runs")).runs;
      problem.value = "";
    } catch (error) {
      problem.value = error instanceof Problem ? error.message : String(error);
    }
    timer = setTimeout(look, (run.peek()?.quiet ?? OVER) < OVER ? BEAT : REST);
  };
  void look();
  return () => clearTimeout(timer);
}

/** Follow the figures of a run from their beginning; returns how to stop. */
function figures(name: string): () => void {
  let timer = 0;
  let next = 0;
  const stop = new AbortController();
  rows.value = [];
  const look = async () => {
    try {
      const path = `studio/runs/${encodeURIComponent(name)}/figures?start=${next}`;
      const found = await get<{ rows: Row[]; start: number; next: number }>(path, stop.signal);
      if (found.start < next) rows.value = found.rows;
      else if (found.rows.length) rows.value = [...rows.peek(), ...found.rows];
      next = found.next;
    } catch (error) {
      if (stop.signal.aborted) return;
      problem.value = error instanceof Problem ? error.message : String(error);
    }
    timer = setTimeout(look, BEAT);
  };
  if (name) void look();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}

const key = (name: string, step: number, sentence: string): string => JSON.stringify([name, step, sentence]);

/** Ask each checkpoint once; its answer stays when the checkpoint is gone. */
async function sampled({ name, checkpoints }: Run, sentence: string): Promise<void> {
  if (!sentence.trim()) return;
  for (const step of checkpoints) {
    const at = key(name, step, sentence);
    if (samples.peek().has(at)) continue;
    try {
      const query = new URLSearchParams({ step: String(step), text: sentence });
      const found = await get<Prediction>(`studio/runs/${encodeURIComponent(name)}/sample?${query}`);
      samples.value = new Map(samples.peek()).set(at, found);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) problem.value = (error as Error).message; // 404: replaced by a newer one
    }
    if (text.peek() !== sentence || named.peek() !== name) return;
  }
}

const PACE = ["rate", "norm", "tokens_per_second"];
const TOLD = new Set(["step", "epoch", "seconds", "trained", "best", "loss", "valid_loss", ...PACE]);
const NAMES: Record<string, string> = {
  rate: "Learning rate",
  norm: "Gradient norm",
  tokens_per_second: "Speed",
  bleu: "BLEU",
  chrf: "chrF",
  ter: "TER",
  cer: "Character error rate",
  wer: "Symbol error rate",
  crps: "CRPS",
  mase: "MASE",
  smape: "sMAPE",
};
const UNITS: Record<string, string> = {
  rate: "factor of the update",
  norm: "Euclidean norm of the gradient",
  tokens_per_second: "target tokens per second",
  exact_match: "share of sentences, 0 to 1",
  bleu: "BLEU, 0 to 100",
  chrf: "chrF, 0 to 100",
  ter: "edits per 100 reference words",
  cer: "edits per reference character",
  wer: "edits per reference symbol",
  crps: "weighted quantile loss",
  mase: "error, that of the seasonal naive forecast is 1",
  smape: "percent of the mean of forecast and value",
};
const name = (each: string): string => NAMES[each] ?? each.replaceAll("_", " ");

const curve = (each: string, called = ""): Curve => ({
  name: called,
  points: rows.value.filter((row) => each in row && "step" in row).map((row) => [row.step, row[each]]),
});
const titled = (each: string): string => (NAMES[each] ? name(each) : name(each)[0].toUpperCase() + name(each).slice(1));

/** Loss and metrics. */
function Story(): JSX.Element {
  const measured = rows.value.flatMap((row) => ("valid_loss" in row ? Object.keys(row) : []));
  const judged = [...new Set(measured)].filter((each) => !TOLD.has(each));
  return (
    <div class="story">
      <Curves title="Loss" unit={numbers.value ? "nats per value" : "nats per target token"} curves={[curve("loss", "training"), curve("valid_loss", "validation")]} logarithmic />
      {judged.map((each) => (
        <Curves key={each} title={titled(each)} unit={UNITS[each] ?? name(each)} curves={[curve(each)]} />
      ))}
    </div>
  );
}

/** Learning rate, gradient norm and speed. */
function Pace(): JSX.Element {
  const shown = PACE.filter((each) => rows.value.some((row) => each in row));
  return (
    <div class="story pace">
      {shown.map((each) => (
        <Curves narrow key={each} title={titled(each)} unit={numbers.value && each === "tokens_per_second" ? "values per second" : (UNITS[each] ?? name(each))} curves={[curve(each)]} />
      ))}
    </div>
  );
}

function Samples(): JSX.Element {
  const mine = [...samples.value.entries()]
    .map(([at, found]) => ({ at: JSON.parse(at) as [string, number, string], found }))
    .filter(({ at }) => at[0] === named.value && at[2] === text.value)
    .sort((a, b) => a.at[1] - b.at[1]);
  return (
    <section class="samples" aria-label="Answers by checkpoint">
      <h2>Answers by checkpoint</h2>
      <Ask bare />
      {mine.map(({ at, found }) => (
        <Sample key={at[1]} step={at[1]} found={found} />
      ))}
      {text.value.trim() && !mine.length ? <p class="quiet">No checkpoint yet.</p> : null}
    </section>
  );
}

function Sample({ step, found }: { step: number; found: Prediction }): JSX.Element {
  const cell = useSignal<Cell | null>(null);
  const open = word("at") === String(step);
  return (
    <article class="sample">
      <button type="button" aria-expanded={open} onClick={() => set({ at: open ? null : step })}>
        <span class="figures quiet">step {step.toLocaleString("en")}</span>
        <Say>{found.text || "∅"}</Say>
        {found.attention ? <Thumb values={found.attention} /> : null}
      </button>
      {open && found.attention ? (
        <Matrix
          rows={found.tokens}
          columns={found.source_tokens}
          values={found.attention.map((row, t) => found.attention![t + found.offset] ?? row.map(() => 0))}
          label={`Attention of the checkpoint of step ${step}`}
          active={cell.value}
          onActive={(next) => (cell.value = next)}
        />
      ) : null}
    </article>
  );
}

/** A small matrix without labels. */
function Thumb({ values }: { values: number[][] }): JSX.Element {
  const [T, S] = [values.length, values[0]?.length ?? 0];
  return (
    <svg class="thumb" viewBox={`0 0 ${S} ${T}`} preserveAspectRatio="none" aria-hidden="true">
      {values.flatMap((row, t) => row.map((weight, s) => (weight < 0.04 ? null : <rect key={`${t} ${s}`} x={s} y={t} width={1} height={1} fill={heat(weight)} />)))}
    </svg>
  );
}
