// An answer while it is generated.
import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { followed, type PredictRequest, type Prediction } from "../api";
import { follow, question } from "../session";
import { Say } from "./tokens";

interface Following {
  found: Signal<Prediction | null>;
  begun: Signal<string | null>; // the text so far; null before the first part and after the last
}

/** The answer to the question, sent again whenever the question changes. */
export function useAnswer(): Following {
  const found = useSignal<Prediction | null>(null);
  const begun = useSignal<string | null>(null);
  useEffect(() => {
    const ask = (request: PredictRequest, signal: AbortSignal) => followed(request, signal, (part) => (begun.value = part.text));
    return follow(question, ask, (answer) => {
      begun.value = null;
      found.value = answer;
    });
  }, []);
  return { found, begun };
}

export const SoFar = ({ title, text }: { title: string; text: string }): JSX.Element => (
  <article class="answer">
    <h2>{title}</h2>
    <p class="line begun">
      <Say>{text}</Say>
    </p>
  </article>
);
