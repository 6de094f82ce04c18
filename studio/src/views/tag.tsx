// Tag: the text with its tags below it, one color and one name for each kind of tag.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { predict, predictAll, type Prediction, type PredictRequest } from "../api";
import { Ask } from "../ask";
import { Numbers } from "../components/numbers";
import { Say, Token } from "../components/tokens";
import { Examples } from "../examples";
import { follow, model, question } from "../session";
import { percent, visible } from "../text";

const OUTSIDE = "O"; // the tag of tokens outside of every span
const COLORS = 9; // of the palette

export function Tag(): JSX.Element {
  const found = useSignal<Answer | null>(null);
  useEffect(() => follow(question, ask, (answer) => (found.value = answer)), []);
  return (
    <>
      <Ask />
      {found.value?.found.text ? <Tagged {...found.value} /> : <Examples />}
    </>
  );
}

interface Answer {
  found: Prediction;
  effects: number[][] | null; // (token that is hidden, tag): how much of its probability the tag loses; null of a long text
}

const UNKNOWN = "\ufffd"; // in no vocabulary, so the model reads an unknown token
const MOST = 100; // tokens of a text whose tags are computed again, each time without one of them

async function ask(request: PredictRequest, signal: AbortSignal): Promise<Answer> {
  const found = await predict(request, signal);
  const { tokens, tags } = tokensOf(found);
  if (!found.text || tokens.length > MOST) return { found, effects: null };
  const space = found.source.includes(" ") && tokens.length === found.source.split(" ").length ? " " : "";
  const texts = tokens.map((_, i) => tokens.with(i, UNKNOWN).join(space));
  const others = await predictAll(request.model, texts, signal);
  const before = found.token_scores.map(Math.exp);
  const effects = others.map((other) => {
    const changed = other.text.split(" ");
    return tags.map((tag, j) => (changed[j] === tag ? Math.max(0, before[j] - Math.exp(other.token_scores[j])) : 1));
  });
  return { found, effects };
}

/** Tokens next to each other that belong together. */
interface Run {
  type: string;
  start: number;
  end: number; // not included
}

/** The kind of a tag, without where in its span it stands. */
const typeOf = (tag: string): string => tag.replace(/^[BIES]-(?=.)/, "");

/** All kinds of tags of the model, in one order, so that a color always means the same. */
function types(tags: string[]): string[] {
  const known = [...(model.value?.labels ?? []), ...tags].map(typeOf);
  return [...new Set(known)].filter((each) => each !== OUTSIDE);
}

/** One tag for each word, or for each character. */
function tokensOf({ source, text }: Prediction): { tokens: string[]; tags: string[] } {
  const tags = text.split(" ");
  const words = source.split(" ");
  return { tokens: words.length === tags.length ? words : [...source], tags };
}

/** Spans as the model marks them; or tokens of equal tags. */
function runs(tags: string[], spans: Prediction["spans"]): Run[] {
  const starts = new Set(spans?.map(({ start }) => start));
  const found: Run[] = [];
  tags.map(typeOf).forEach((type, i) => {
    const last = found.at(-1);
    if (last && last.type === type && !(spans && starts.has(i))) last.end = i + 1;
    else found.push({ type, start: i, end: i + 1 });
  });
  return found;
}

function Tagged({ found, effects }: Answer): JSX.Element {
  const looked = useSignal<number | null>(null);
  const { tokens, tags } = tokensOf(found);
  const all = types(tags);
  const close = tokens.every((token) => [...token].length <= 1);
  const sure = found.token_scores.map(Math.exp);
  const color = (type: string) => (type === OUTSIDE ? "transparent" : `var(--line-${all.indexOf(type) % COLORS})`);
  const at = looked.value;
  return (
    <article class="answer">
      <h2>Tags</h2>
      <div class={close ? "tagged close" : "tagged"} role="group" aria-label="Tags">
        {runs(tags, found.spans).map(({ type, start, end }) => (
          <span key={start} class={type === OUTSIDE ? "run outside" : "run"} style={{ "--color": color(type) }}>
            <span class="tokens">
              {tokens.slice(start, end).map((token, i) => (
                <button
                  type="button"
                  key={i}
                  class={start + i === at ? "chip current" : "chip"}
                  style={at === null || !effects ? undefined : { "--tint": `${Math.round(effects[start + i][at] * 100)}%` }}
                  data-tint={at === null || !effects ? undefined : Math.round(effects[start + i][at] * 100)}
                  aria-label={`${visible(token)}: ${tags[start + i]}, ${percent(sure[start + i])}`}
                  onPointerEnter={() => (looked.value = start + i)}
                  onPointerLeave={() => (looked.value = null)}
                  onFocus={() => (looked.value = start + i)}
                  onBlur={() => (looked.value = null)}
                >
                  <Token of={token} />
                </button>
              ))}
            </span>
            <span class="tag" aria-hidden="true">
              {type === OUTSIDE ? "" : <Say>{type}</Say>}
            </span>
          </span>
        ))}
      </div>
      <p class="readout" role="status">
        {at === null || at >= tokens.length ? (
          <span class="quiet">
            Point at a token to see the probability of its tag{effects ? ", and the tokens that the tag depends on: the darker, the more of its probability is lost when the token is hidden" : ""}.
          </span>
        ) : (
          <>
            <Token of={tokens[at]} /> <span class="quiet">is tagged</span> <Say>{tags[at]}</Say> {percent(sure[at])}
            {effects ? <Depends tokens={tokens} losses={effects.map((row) => row[at])} /> : null}
          </>
        )}
      </p>
      <Legend all={all} tags={tags} color={color} />
      <Numbers
        caption="each token, its tag, and the probability of the tag after those before it"
        corner="token"
        columns={[<>tag</>, <>probability</>]}
        rows={tokens.map((head, i) => ({ head, cells: [<Say>{tags[i]}</Say>, sure[i]] }))}
      />
      {found.spans?.length ? (
        <Numbers
          caption="each span, and where it begins and ends"
          corner="span"
          columns={[<>label</>, <>first token</>, <>last token</>]}
          rows={found.spans.map(({ label, start, end, text }) => ({ head: <Say>{text}</Say>, cells: [<Say>{label}</Say>, <>{start + 1}</>, <>{end}</>] }))}
        />
      ) : null}
    </article>
  );
}

/** The tokens without which the tag is another, or less probable. */
function Depends({ tokens, losses }: { tokens: string[]; losses: number[] }): JSX.Element {
  const best = losses
    .map((loss, i) => ({ loss, token: tokens[i] }))
    .filter(({ loss }) => loss >= 0.01)
    .sort((a, b) => b.loss - a.loss)
    .slice(0, 3);
  if (!best.length) return <span class="quiet">, whichever token is hidden</span>;
  return (
    <>
      , depends on
      {best.map(({ token, loss }, i) => (
        <span key={i}>
          {" "}
          <Token of={token} /> <span class="quiet">{loss === 1 ? "(another tag without it)" : `(${percent(loss)} lost)`}</span>
        </span>
      ))}
    </>
  );
}

/** Every kind of tag, its color, and how many tokens have it. */
function Legend({ all, tags, color }: { all: string[]; tags: string[]; color: (type: string) => string }): JSX.Element {
  const count = (type: string) => tags.filter((tag) => typeOf(tag) === type).length;
  return (
    <ul class="kinds" aria-label="Kinds of tags, and how many tokens have them">
      {all.map((type) => (
        <li key={type} class={count(type) ? undefined : "quiet"} style={{ "--color": color(type) }}>
          <Say>{type}</Say> <span class="quiet">{count(type)}</span>
        </li>
      ))}
    </ul>
  );
}
