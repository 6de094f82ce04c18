// The source, of which any token or word can be hidden from attention.
import type { JSX } from "preact";
import { Line, runsOn, Token } from "../components/tokens";
import { Switch } from "../components/switch";
import { set, word } from "../address";
import { task } from "../session";
import { visible } from "../text";
import type { Trace } from "../trace";
import { here, samePart, change, changes } from "./search";

export function SourceLine({ trace }: { trace: Trace }): JSX.Element {
  const { source_tokens: tokens, source_words: of = [] } = trace;
  const name = task.value.axes[0] === "source" ? "Source tokens" : "Tokens of the text";
  const divided = tokens.some((_, s) => of[s] >= 0 && of.indexOf(of[s]) !== s); // a word of several tokens
  const whole = divided && word("by") !== "token";
  const hidden = (s: number) => changes.value.masks.some((mask) => mask.source === s && samePart(mask, here.value));
  const toggle = (s: number) => {
    const these = whole && of[s] >= 0 ? tokens.map((_, i) => i).filter((i) => of[i] === of[s]) : [s];
    const { masks } = changes.peek();
    const others = masks.filter((mask) => !(these.includes(mask.source) && samePart(mask, here.peek())));
    change({ masks: hidden(s) ? others : [...others, ...these.map((source) => ({ source, ...here.peek() }))] });
  };
  return (
    <section class="hiding">
      <div class="bar">
        <h2>{name}: click one to hide it from attention</h2>
        {divided ? (
          <Switch
            label="Hide whole words or single tokens"
            value={whole ? "word" : "token"}
            choices={[
              ["word", "words"],
              ["token", "tokens"],
            ]}
            onChoose={(by) => set({ by: by === "word" ? null : by })}
          />
        ) : null}
      </div>
      <Line label={name} close={runsOn(tokens)}>
        {tokens.map((token, s) => (
          <button
            type="button"
            key={s}
            class={["chip", hidden(s) && "hid", /^<.*>$/.test(token) && "control"].filter(Boolean).join(" ")}
            aria-pressed={hidden(s)}
            aria-label={`Hide ${visible(token)}`}
            onClick={() => toggle(s)}
          >
            <Token of={token} />
          </button>
        ))}
      </Line>
    </section>
  );
}
