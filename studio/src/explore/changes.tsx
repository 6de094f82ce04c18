// The changes to the search, each with a button to undo it.
import type { ComponentChildren, JSX } from "preact";
import { Say, Token } from "../components/tokens";
import { task } from "../session";
import { fixed, joined, visible } from "../text";
import { type Part, shape } from "../trace";
import type { Pair } from "../views/whatif";
import { type Mask, NOTHING, nothing, samePart, change, changes } from "./search";

/** Neighbors that are hidden at the same place are one change. */
function runs(masks: Mask[]): Mask[][] {
  const found: Mask[][] = [];
  for (const mask of [...masks].sort((a, b) => a.source - b.source)) {
    const run = found.find((each) => samePart(each[0], mask) && each.at(-1)!.source === mask.source - 1);
    if (run) run.push(mask);
    else found.push([mask]);
  }
  return found;
}

/** Removes all changes where the server rejected one. */
export const StartOver = (): JSX.Element => (
  <p class="changes">
    <button type="button" class="plain" onClick={() => change(NOTHING)}>
      Start over
    </button>
  </p>
);

export function Changes({ pair }: { pair: Pair }): JSX.Element {
  if (nothing.value)
    return (
      <p class="quiet changes">
        {!task.value.changes
          ? `Force another ${task.value.paired ? "tag" : "token"} at a step to see what follows from it.`
          : shape(pair.alone).layers
            ? `Click a token to hide it from attention, drag a weight, or force another ${task.value.search === "none" ? task.value.answer : "token at a step"}.`
            : `This model has no attention, but you can force another ${task.value.search === "none" ? task.value.answer : "token at a step"}.`}
      </p>
    );
  const { prefix, end, masks, weights } = changes.value;
  const source = pair.alone.source_tokens;
  const beginning = pair.changed.hypotheses[0].tokens.slice(0, prefix.length + (end ? 1 : 0));
  return (
    <ul class="changes" aria-label="What is changed">
      {beginning.length ? (
        <Change name={`begins with ${joined(beginning)}`} onUndo={() => change({ prefix: [], end: false })}>
          begins with <Say>{joined(beginning)}</Say>
        </Change>
      ) : null}
      {runs(masks).map((run, i) => {
        const hidden = run.map((mask) => source[mask.source] ?? "").join("");
        return (
          <Change
            key={`m${i}`}
            name={`${visible(hidden)} hidden`}
            onUndo={() => change({ masks: masks.filter((each) => !run.includes(each)) })}
          >
            <Token of={hidden} /> hidden
            <Where of={run[0]} />
          </Change>
        );
      })}
      {weights.map((pin, i) => (
        <Change
          key={`p${i}`}
          name={`step ${pin.step + 1}, ${visible(source[pin.source] ?? "")} fixed`}
          onUndo={() => change({ weights: weights.filter((each) => each !== pin) })}
        >
          step {pin.step + 1}: weight of <Token of={source[pin.source] ?? "?"} /> = {fixed(pin.weight, 2)}
          <Where of={pin} />
        </Change>
      ))}
      <li>
        <button type="button" class="plain" onClick={() => change(NOTHING)}>
          Start over
        </button>
      </li>
    </ul>
  );
}

function Change({ name, onUndo, children }: { name: string; onUndo: () => void; children: ComponentChildren }): JSX.Element {
  return (
    <li class="change">
      <span>{children}</span>
      <button type="button" aria-label={`Undo: ${name}`} title="Undo" onClick={onUndo}>
        ×
      </button>
    </li>
  );
}

function Where({ of: { layer, head } }: { of: Part }): JSX.Element | null {
  if (layer === null && head === null) return null;
  const named = [layer === null ? "" : `layer ${layer + 1}`, head === null ? "" : `head ${head + 1}`].filter(Boolean);
  return <span class="quiet"> in {named.join(", ")}</span>;
}
