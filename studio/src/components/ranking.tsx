// Translations to choose from, best first.
import type { JSX } from "preact";
import { set } from "../address";
import { fixed } from "../text";
import { Say } from "./tokens";

interface RankingProps {
  title: string;
  note: string; // what a score is
  field?: string; // of the address
  all: { text: string; score: number }[];
  rank: number;
}

export function Ranking({ title, note, all, rank, field = "rank" }: RankingProps): JSX.Element {
  return (
    <section>
      <h2 id="ranking">{title}</h2>
      <p class="quiet small">{note}</p>
      <ol class="ranking" aria-labelledby="ranking">
        {all.map((each, r) => (
          <li key={r}>
            <button type="button" aria-pressed={r === rank} onClick={() => set({ [field]: r || null })}>
              <Say>{each.text || "∅"}</Say>
              <span class="figures quiet">{fixed(each.score, 2)}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
