// Translations from the best on, to choose from.
import type { JSX } from "preact";
import { set } from "../address";
import { fixed } from "../text";
import { Say } from "./tokens";

interface RankingProps {
  title: string;
  all: { text: string; score: number }[];
  rank: number;
}

export function Ranking({ title, all, rank }: RankingProps): JSX.Element {
  return (
    <section>
      <h2 id="ranking">{title}</h2>
      <ol class="ranking" aria-labelledby="ranking">
        {all.map((each, r) => (
          <li key={r}>
            <button type="button" aria-pressed={r === rank} onClick={() => set({ rank: r || null })}>
              <Say>{each.text || "∅"}</Say>
              <span class="figures quiet">{fixed(each.score, 2)}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
