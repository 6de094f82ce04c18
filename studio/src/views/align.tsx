// Align: attention as a matrix or as lines, between tokens or words; can be saved.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { set, word } from "../address";
import { Ask } from "../ask";
import { dark, paper, top } from "../color";
import { Heads } from "../components/heads";
import { DrawnLines, type End, Lines } from "../components/lines";
import { type Cell, Drawn, Matrix } from "../components/matrix";
import { Numbers } from "../components/numbers";
import { Rank } from "../components/rank";
import { Switch } from "../components/switch";
import { Say, Token } from "../components/tokens";
import { Examples } from "../examples";
import { csv, download, pharaoh, png, svg } from "../export";
import { chosen, moments, part, parts, trace } from "../session";
import { fixed } from "../text";
import { attention, type Hypothesis, looked, lookedWords, merged, type Trace, words } from "../trace";

interface Grid {
  source: string[];
  target: string[];
  values: number[][]; // (target, source)
  linked: { sources: number; targets: number }; // how many can be linked: an end mark is not
}

export function Align(): JSX.Element {
  return (
    <>
      <Ask />
      {trace.value && chosen.value ? <Aligned trace={trace.value} hypothesis={chosen.value} /> : <Examples />}
    </>
  );
}

function Aligned({ trace: found, hypothesis }: { trace: Trace; hypothesis: Hypothesis }): JSX.Element {
  if (!parts.value.layers) return <p class="empty">This model has no attention, so there are no weights to show.</p>;
  const both = Boolean(lookedWords(found, hypothesis) && hypothesis.words);
  const unit = both && word("unit") === "words" ? "words" : "tokens";
  const form = word("form") === "lines" ? "lines" : "matrix";
  const grid = unit === "words" ? byWord(found, hypothesis) : byToken(found, hypothesis);
  return (
    <article class="aligned">
      <div class="bar">
        <Switch label="Form" value={form} choices={[["matrix", "Matrix"], ["lines", "Lines"]]} onChoose={(form) => set({ form: form === "matrix" ? null : form })} />
        {both ? (
          <Switch label="Unit" value={unit} choices={[["tokens", "Tokens"], ["words", "Words"]]} onChoose={(unit) => set({ unit: unit === "tokens" ? null : unit })} />
        ) : null}
        <Heads />
        <Rank />
        <Exports grid={grid} form={form} />
      </div>
      <p class="pair">
        <Say>{hypothesis.text}</Say>
      </p>
      <Picture grid={grid} form={form} />
      <Numbers
        caption={found.looks_back ? "weights, a row per token, a column per earlier token" : "weights, a row per target token, a column per source token"}
        corner={found.looks_back ? "token \\ earlier" : "target \\ source"}
        columns={grid.source}
        rows={grid.target.map((head, t) => ({ head, cells: grid.values[t] }))}
      />
    </article>
  );
}

function byToken(found: Trace, hypothesis: Hypothesis): Grid {
  return {
    source: looked(found, hypothesis),
    target: hypothesis.tokens,
    values: attention(found, moments.value, part.value),
    linked: { sources: found.source_tokens.length - 1, targets: hypothesis.tokens.length - Number(hypothesis.finished) },
  };
}

function byWord(found: Trace, hypothesis: Hypothesis): Grid {
  const source = words(looked(found, hypothesis), lookedWords(found, hypothesis)!);
  const target = words(hypothesis.tokens, hypothesis.words!);
  return {
    source: source.labels,
    target: target.labels,
    values: merged(attention(found, moments.value, part.value), source, target),
    linked: { sources: source.labels.length, targets: target.labels.length },
  };
}

function Picture({ grid, form }: { grid: Grid; form: string }): JSX.Element {
  const cell = useSignal<Cell | null>(null);
  const end = useSignal<End | null>(null);
  const { source, target, values } = grid;
  return (
    <>
      <p class="readout" role="status">
        {form === "matrix" ? <CellReadout grid={grid} cell={cell.value} /> : <TokenReadout grid={grid} end={end.value} />}
      </p>
      {form === "matrix" ? (
        <Matrix rows={target} columns={source} values={values} top={top([grid.values])} label={LABEL()} active={cell.value} onActive={(next) => (cell.value = next)} />
      ) : (
        <Lines source={source} target={target} values={values} label={LABEL()} active={end.value} onActive={(next) => (end.value = next)} />
      )}
    </>
  );
}

const LABEL = (): string => (trace.value?.looks_back ? "Attention of each token over those before it" : "Attention of each target token over the source");

function CellReadout({ grid, cell }: { grid: Grid; cell: Cell | null }): JSX.Element {
  const weight = cell && grid.values[cell.row]?.[cell.column];
  if (!cell || weight === null || weight === undefined)
    return (
      <span class="quiet">
        Point at a cell, or move with the arrow keys. Each row ({trace.value?.looks_back ? "token" : "target token"}) shows its weights on the columns (
        {trace.value?.looks_back ? "earlier tokens" : "source tokens"}).
      </span>
    );
  return (
    <>
      <Token of={grid.target[cell.row]} /> attends to <Token of={grid.source[cell.column]} />: {fixed(weight)}
    </>
  );
}

function TokenReadout({ grid, end }: { grid: Grid; end: End | null }): JSX.Element {
  const mine = end && (end.side === "source" ? grid.source : grid.target)[end.at];
  if (!end || mine === undefined || mine === null)
    return <span class="quiet">Point at a token, or move with the arrow keys. A line is as thick as its weight.</span>;
  const others = end.side === "source" ? grid.target : grid.source;
  const weights = end.side === "source" ? grid.values.map((row) => row[end.at]) : grid.values[end.at];
  const best = weights
    .map((weight, i) => ({ weight, i }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3)
    .filter(({ weight }) => weight >= 0.01);
  return (
    <>
      <Token of={mine} /> {end.side === "source" ? "is attended to by" : "attends to"}
      {best.map(({ weight, i }) => (
        <span key={i}>
          {" "}
          <Token of={others[i]} /> <span class="quiet">{fixed(weight, 2)}</span>
        </span>
      ))}
      {best.length ? "" : " no token"}
    </>
  );
}

function Exports({ grid, form }: { grid: Grid; form: string }): JSX.Element {
  const { source, target, values, linked } = grid;
  const picture = () => {
    const drawn =
      form === "matrix" ? (
        <Drawn rows={target} columns={source} values={values} top={top([grid.values])} label={LABEL()} />
      ) : (
        <DrawnLines source={source} target={target} values={values} label={LABEL()} />
      );
    return svg(drawn, paper(dark.value));
  };
  const saved = (name: string, text: string, kind: string) => download(name, new Blob([text], { type: kind }));
  const kinds: [string, () => void][] = [
    ["SVG", () => saved("alignment.svg", picture(), "image/svg+xml")],
    ["PNG", () => void png(picture()).then((blob) => download("alignment.png", blob))],
    ["CSV", () => saved("alignment.csv", csv(source, target, values), "text/csv")],
  ];
  if (!trace.value?.looks_back) kinds.push(["Pharaoh", () => saved("alignment.txt", pharaoh(values, linked.sources, linked.targets), "text/plain")]); // links are between two texts
  return (
    <div class="end" role="group" aria-label="Save as">
      <span class="quiet">Save</span>
      {kinds.map(([name, save]) => (
        <button type="button" class="plain" key={name} onClick={save}>
          {name}
        </button>
      ))}
    </div>
  );
}
