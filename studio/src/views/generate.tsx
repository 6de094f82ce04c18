// Generate: a text that continues the one given, while it is generated; the probability of each token, and its attention to earlier tokens.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { go, link } from "../address";
import type { Prediction } from "../api";
import { Ask } from "../ask";
import { SoFar, useAnswer } from "../components/sofar";
import { Numbers } from "../components/numbers";
import { Chip, Flow, Token } from "../components/tokens";
import { Examples } from "../examples";
import { fixed, percent } from "../text";

export function Generate(): JSX.Element {
  const { found, begun } = useAnswer();
  return (
    <>
      <Ask />
      <Examples />
      {begun.value !== null ? <SoFar title="Text" text={begun.value} /> : found.value ? <Text found={found.value} /> : null}
    </>
  );
}

function Text({ found }: { found: Prediction }): JSX.Element {
  const looked = useSignal<number | null>(null);
  const { tokens, attention: rows, prompt_tokens: given = 0 } = found;
  const sure = found.token_scores.map(Math.exp);
  const at = looked.value === null || looked.value >= tokens.length ? null : looked.value;
  const back = at === null || !rows ? null : rows[at].slice(1); // its first column is the beginning of the text
  const most = Math.max(...(back ?? []), 0.01); // of a long text all weights are small: the largest has the full color
  const tint = (i: number): number | undefined => (at === null || !back ? undefined : i < at ? back[i] / most : 0);
  return (
    <article class="answer generated">
      <h2>Text</h2>
      <Flow
        label="Text"
        tokens={tokens}
        chip={(t, flowing) => (
          <Chip
            key={t}
            token={tokens[t]}
            flowing={flowing}
            faded={t < given && tint(t) === undefined}
            confidence={t < given ? undefined : sure[t]}
            tint={tint(t)}
            current={t === at}
            label={`${tokens[t]}, ${t < given ? "given" : percent(sure[t])}`}
            onLook={(on) => (looked.value = on ? t : null)}
            onPick={() => go("step", { step: t })}
          />
        )}
      />
      <p class="readout" role="status">
        {at === null ? (
          <span class="quiet">
            {rows ? "Point at a token to see which earlier tokens it attends to; darker means a larger weight. " : "This model has no attention. "}
            The line under a token is redder for a lower probability. {found.finished ? "" : "The text ended at the largest number of tokens."}
          </span>
        ) : (
          <>
            <Token of={tokens[at]} /> {at < given ? <span class="quiet">is given</span> : percent(sure[at])}
            <Looks tokens={["<s>", ...tokens]} weights={rows?.[at] ?? []} />
          </>
        )}
      </p>
      <p>
        <a href={link("step")}>Show each step, with the candidates</a>
      </p>
      <Numbers
        caption="each token, its probability, and the earlier token with the largest weight"
        corner="token"
        columns={rows ? [<>probability</>, <>attends most to</>, <>weight</>] : [<>probability</>]}
        rows={tokens.map((head, t) => ({ head, cells: [sure[t], ...(rows ? strongest(["<s>", ...tokens], rows[t].slice(0, t + 1)) : [])] }))}
      />
    </article>
  );
}

function strongest(tokens: string[], row: number[]): [string, number] {
  const at = row.indexOf(Math.max(...row));
  return [tokens[at], row[at]];
}

/** The tokens with the largest weights, in words. */
function Looks({ tokens, weights }: { tokens: string[]; weights: number[] }): JSX.Element {
  const best = weights
    .map((weight, i) => ({ weight, token: tokens[i] }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3)
    .filter(({ weight }) => weight >= 0.01);
  return (
    <>
      {best.length ? ", looks back at" : ""}
      {best.map(({ token, weight }, i) => (
        <span key={i}>
          {" "}
          <Token of={token} /> <span class="quiet">{fixed(weight, 2)}</span>
        </span>
      ))}
    </>
  );
}
