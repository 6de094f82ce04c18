// The candidates for the next token, and the chosen one.
import type { JSX } from "preact";
import { Say, Token } from "../components/tokens";
import { percent, visible } from "../text";
import { moment, open, opened, reached } from "./moment";

export function Words(): JSX.Element | null {
  const now = moment.value;
  if (!now) return null;
  const listed = now.branch.candidates.some(({ id }) => id === now.id);
  return (
    <section class={reached("words") ? "words" : "words yet"} aria-label="Candidates">
      <p class="quiet small">Candidates for the next token and their probability</p>
      <ol>
        {now.branch.candidates.map(({ id, token, log_probability }) => {
          const p = Math.exp(log_probability ?? -Infinity);
          const said = id === now.id && reached("token");
          return (
            <li key={id} class={said ? "said" : undefined}>
              <button type="button" aria-pressed={opened.value.phase === "words"} aria-label={`${visible(token)}, ${percent(p)}`} disabled={!reached("words")} onClick={() => open("words")}>
                <span class="what">
                  <Token of={token} />
                </span>
                <span class="gauge" style={{ "--size": `${p * 100}%` }} />
                <span class="figure">{percent(p)}</span>
              </button>
            </li>
          );
        })}
      </ol>
      <button type="button" class={reached("token") ? "spoken" : "spoken yet"} aria-pressed={opened.value.phase === "token"} disabled={!reached("token")} onClick={() => open("token")}>
        <span class="quiet">{listed ? "chosen:" : "chosen, because the score of the whole translation is higher:"}</span> <Say>{visible(now.token)}</Say>
      </button>
    </section>
  );
}
