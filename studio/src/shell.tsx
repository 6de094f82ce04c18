// The frame of the page: its name and its views, which are links.
import type { FunctionComponent, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { go, link, VIEWS, type View, view } from "./address";
import { choose, type Scheme, scheme } from "./color";
import { useScrollHint } from "./components/scrolling";
import { typing } from "./keys";
import { Ask } from "./ask";
import { busy, enclosed, model, task } from "./session";
import { Align } from "./views/align";
import { Answer } from "./views/answer";
import { Beam } from "./views/beam";
import { Classify } from "./views/classify";
import { Compare } from "./views/compare";
import { Forecast } from "./views/forecast";
import { Generate } from "./views/generate";
import { Step } from "./views/step";
import { Tag } from "./views/tag";
import { Train } from "./views/train";
import { Translate } from "./views/translate";
import { WhatIf } from "./views/whatif";

/** The first view, by task. */
const FIRST: Record<string, FunctionComponent> = { translation: Translate, classification: Classify, tagging: Tag, questions: Answer, modeling: Generate, forecasting: Forecast };

const Predict = (): JSX.Element => {
  const First = FIRST[model.value?.task ?? ""] ?? Translate;
  return <First />;
};

const PAGES: Record<View, { name: string; show: FunctionComponent }> = {
  predict: { name: "", show: Predict },
  step: { name: "Step", show: Step },
  align: { name: "Align", show: Align },
  beam: { name: "Beam", show: Beam },
  whatif: { name: "What if", show: WhatIf },
  compare: { name: "Compare", show: Compare },
  train: { name: "Train", show: Train },
};

const ENCLOSED: View[] = ["step", "align"]; // what a page without a server can show
const offered = (): readonly View[] => (enclosed ? ENCLOSED : VIEWS).filter((each) => !task.value.without[each]);
const nameOf = (each: View): string => task.value.names?.[each] ?? (PAGES[each].name || task.value.view);

/** A view that the task of the model does not have: why, and where to look instead. */
const Without = ({ reason }: { reason: string }): JSX.Element => (
  <>
    <Ask />
    <p class="empty">
      {reason} <a href={link("predict")}>Go to {task.value.view}</a>
    </p>
  </>
);

export function Shell(): JSX.Element {
  const reason = task.value.without[view.value];
  const shown = reason || (enclosed ? ENCLOSED : VIEWS).includes(view.value) ? view.value : offered()[0];
  const Show = PAGES[shown].show;
  const name = nameOf(shown);
  const nav = useScrollHint<HTMLElement>();
  useEffect(() => {
    document.title = `${name} · Regarde`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [shown, name]);
  useEffect(() => {
    document.documentElement.style.colorScheme = scheme.value === "auto" ? "light dark" : scheme.value;
  }, [scheme.value]);
  useEffect(() => {
    addEventListener("keydown", byNumber);
    return () => removeEventListener("keydown", byNumber);
  }, []);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the view
      </a>
      <header class="top">
        <p class="name">
          <Mark /> Regarde
        </p>
        <nav ref={nav} aria-label="Views">
          {offered().map((each) => (
            <a key={each} href={link(each)} aria-current={each === shown ? "page" : undefined} onClick={(event) => follow(event, each)}>
              {nameOf(each)}
            </a>
          ))}
        </nav>
        <SchemeChoice />
      </header>
      <main id="main" tabindex={-1} class={`view ${shown}${busy.value ? " waiting" : ""}`}>
        <h1 class="hidden">{name}</h1>
        {reason ? <Without reason={reason} /> : <Show />}
      </main>
    </>
  );
}

/** The logo: three lines that meet. */
const Mark = (): JSX.Element => (
  <svg class="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
    <path d="M3 4 C 12 4, 12 12, 20 12 M3 12 H 20 M3 20 C 12 20, 12 12, 20 12" fill="none" stroke="currentColor" stroke-linecap="round" />
    <circle cx="20" cy="12" r="3" fill="currentColor" />
  </svg>
);

function SchemeChoice(): JSX.Element {
  const next: Record<Scheme, Scheme> = { auto: "light", light: "dark", dark: "auto" };
  const sign: Record<Scheme, string> = { auto: "◐", light: "○", dark: "●" };
  return (
    <button
      type="button"
      class="scheme"
      aria-label={`Colors: ${scheme.value}. Change to ${next[scheme.value]}.`}
      title={`Colors: ${scheme.value}`}
      onClick={() => choose(next[scheme.value])}
    >
      {sign[scheme.value]}
    </button>
  );
}

function follow(event: MouseEvent, to: View): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return; // a new tab is the browser's to open
  event.preventDefault();
  go(to);
}

function skip(event: MouseEvent): void {
  event.preventDefault(); // the address holds the state, not a place on the page
  document.getElementById("main")?.focus();
}

function byNumber(event: KeyboardEvent): void {
  const to = offered()[Number(event.key) - 1];
  if (to && /^[1-9]$/.test(event.key) && !typing(event)) go(to);
}
