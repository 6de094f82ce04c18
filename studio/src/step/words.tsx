// The candidates for the next token, and the chosen one.
import type { JSX } from "preact";
import { Say, Token } from "../components/tokens";
import { task, trace } from "../session";
import { percent, visible } from "../text";
import { columns, moment, open, opened, reached, t } from "./moment";

/** Why a token was chosen that is not among the likeliest. */
const REASONS: Record<string, string> = {
  beam: "chosen, because the score of the whole answer is higher:",
  sampling: "sampled, though it is not among the likeliest:",
};

export function Words(): JSX.Element | null {
  const now = moment.value;
  if (!now) return null;
  const given = t.value < (trace.value?.prompt_tokens ?? 0);
  const listed = now.branch.candidates.some(({ id }) => id === now.id);
  return (
    <section class={reached("words") ? "words" : "words yet"} aria-label="Candidates">
      <p class="quiet small">
        {task.value.candidates} and their probability
      </p>
      <ol>
        {now.branch.candidates.map(({ id, token, log_probability }) => {
          const p = Math.exp(log_probability ?? -Infinity);
          const chosen = id === now.id && reached("token");
          return (
            <li key={id} class={chosen ? "chosen" : undefined}>
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
        <span class="quiet">{given ? "given:" : listed ? "chosen:" : REASONS[String(trace.value?.search.kind)] ?? REASONS.beam}</span> <Say>{visible(now.token)}</Say>
      </button>
      {now.copied === undefined ? null : <Origin />}
    </section>
  );
}

/** Whether the token was copied, from where, and how much of the probability is that of the vocabulary. */
function Origin(): JSX.Element {
  const { branch, copied } = moment.value!;
  const p = branch.p_gen ?? 0;
  return (
    <p class={reached("token") ? "origin" : "origin yet"}>
      {copied === null || copied === undefined ? (
        "Generated from the vocabulary."
      ) : (
        <>
          Copied from source token {copied + 1}, <Token of={columns.value[copied] ?? ""} />.
        </>
      )}
      <span class="split" role="img" aria-label={`p_gen ${percent(p)}`} style={{ "--size": `${p * 100}%` }} />
      <span class="quiet small">
        vocabulary {percent(p)}, copying {percent(1 - p)}
      </span>
    </p>
  );
}
