// Translate: the translation as it is made, the probability of each token, and what it attends to.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { go, link, number } from "../address";
import type { Alternative, Prediction } from "../api";
import { Ask } from "../ask";
import { SoFar, useAnswer } from "../components/sofar";
import { Chip, Line, runsOn, Token } from "../components/tokens";
import { Numbers } from "../components/numbers";
import { Ranking } from "../components/ranking";
import { Examples } from "../examples";
import { scoring } from "../explore/tree";
import { model } from "../session";
import { fixed, percent } from "../text";

type Looked = { side: "source" | "target"; at: number } | null;

export function Translate(): JSX.Element {
  const { found, begun } = useAnswer();
  return (
    <>
      <Ask />
      {begun.value !== null ? <SoFar title="Translation" text={begun.value} /> : found.value ? <Answer found={found.value} /> : <Examples />}
    </>
  );
}

function Answer({ found }: { found: Prediction }): JSX.Element {
  const looked = useSignal<Looked>(null);
  const { source_tokens: source, offset } = found;
  const all: Alternative[] = [found, ...found.alternatives];
  const rank = Math.min(number("rank") ?? 0, all.length - 1);
  const one = all[rank];
  const rows = one.attention && explained(one.attention, offset);
  const look = (side: "source" | "target", at: number) => (on: boolean) => (looked.value = on ? { side, at } : null);
  const tint = (side: "source" | "target", i: number): number | undefined => {
    const at = looked.value;
    if (!at || !rows) return undefined;
    if (at.side === side) return at.at === i ? 0.35 : 0;
    return side === "source" ? rows[at.at][i] : rows[i][at.at];
  };
  return (
    <article class="answer">
      <h2>Translation</h2>
      <Line label="Translation" close={runsOn(one.tokens)}>
        {one.tokens.map((token, t) => (
          <Chip
            key={t}
            token={token}
            confidence={Math.exp(one.token_scores[t])}
            tint={tint("target", t)}
            label={`${token}, ${percent(Math.exp(one.token_scores[t]))}`}
            onLook={look("target", t)}
            onPick={() => go("step", { step: t, rank: rank || null })}
          />
        ))}
      </Line>
      {rows ? (
        <>
          <h2>Source tokens</h2>
          <Line label="Source tokens" close={runsOn(source)}>
            {source.map((token, s) => (
              <Chip key={s} token={token} tint={tint("source", s)} onLook={look("source", s)} />
            ))}
          </Line>
        </>
      ) : null}
      <p class="readout" role="status">
        <Readout one={one} source={source} rows={rows} looked={looked.value} />
      </p>
      {all.length > 1 ? <Ranking title="Translations found" note={scoring({ alpha: "alpha", ...model.value?.search })} all={all} rank={rank} /> : null}
      <p>
        <a href={link("step", { rank: rank || null })}>Show each step of the decoder</a>
      </p>
      <Numbers
        caption="each token, its probability, and the source token with the largest weight"
        corner="token"
        columns={rows ? ["probability", "attends most to", "weight"] : ["probability"]}
        rows={one.tokens.map((token, t) => ({ head: token, cells: [Math.exp(one.token_scores[t]), ...(rows ? strongest(source, rows[t]) : [])] }))}
      />
    </article>
  );
}

/** Row t belongs to token t: the model's offset is applied. */
const explained = (rows: number[][], offset: number): number[][] =>
  rows.map((row, t) => rows[t + offset] ?? row.map(() => 0));

function strongest(source: string[], row: number[]): [string, number] {
  const at = row.indexOf(Math.max(...row));
  return [source[at], row[at]];
}

interface ReadoutProps {
  one: Alternative;
  source: string[];
  rows: number[][] | null;
  looked: Looked;
}

/** What is pointed at, in words. */
function Readout({ one, source, rows, looked }: ReadoutProps): JSX.Element {
  if (!looked) {
    const hint = rows ? "Point at a token to see which tokens it attends to, or which attend to it." : "This model has no attention.";
    return <span class="quiet">{hint} The line under a token is redder for a lower probability.</span>;
  }
  const { side, at } = looked;
  const mine = side === "source" ? source[at] : one.tokens[at];
  const others = side === "source" ? one.tokens : source;
  const weights = rows ? (side === "source" ? rows.map((row) => row[at]) : rows[at]) : [];
  const best = weights
    .map((weight, i) => ({ weight, token: others[i] }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3)
    .filter(({ weight }) => weight >= 0.01);
  return (
    <>
      <Token of={mine} />
      {side === "target" ? ` ${percent(Math.exp(one.token_scores[at]))}` : ""}
      {best.length ? (side === "source" ? ", attended to by" : ", attends to") : ""}
      {best.map(({ token, weight }, i) => (
        <span key={i}>
          {" "}
          <Token of={token} /> <span class="quiet">{fixed(weight, 2)}</span>
        </span>
      ))}
    </>
  );
}
