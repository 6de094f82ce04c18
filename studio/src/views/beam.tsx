// Beam: the tree of a search, with kept and pruned candidates; the search can continue from any node.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { link, number, set, word } from "../address";
import { Ask } from "../ask";
import { Numbers } from "../components/numbers";
import { Ranking } from "../components/ranking";
import { Say, Token } from "../components/tokens";
import { Tree } from "../components/tree";
import { Examples } from "../examples";
import { explore, NOTHING, change, changes } from "../explore/search";
import { StartOver } from "../explore/changes";
import { FATES, neighbor, type Node, path, scoring, tree } from "../explore/tree";
import { beam, beamKey, bounded, follow, given, model, task, text } from "../session";
import { TASKS } from "../task";
import { fixed, joined, percent, visible } from "../text";
import { END, sayable, type Trace } from "../trace";

const WIDTH = 4; // the default here: greedy search has no tree

export function Beam(): JSX.Element {
  const found = useSignal<Trace | null>(null);
  useEffect(() => {
    if (!word("beam") && !word(beamKey.peek())) set({ [beamKey.peek()]: WIDTH });
    return follow(wish, explore, (answer) => {
      found.value = answer;
    });
  }, []);
  return (
    <>
      <Ask />
      {found.value ? <SearchTree trace={found.value} /> : changes.value.prefix.length ? <StartOver /> : <Examples />}
    </>
  );
}

/** Beam uses the forced tokens; changes of attention belong to What if. */
function wish() {
  if (!model.value || !given.value) return null;
  const { prefix } = changes.value;
  return { model: model.value.name, text: text.value, beam: beam.value, n_best: beam.value, changes: { ...NOTHING, prefix }, ...bounded() };
}

function SearchTree({ trace }: { trace: Trace }): JSX.Element {
  const active = useSignal<Node | null>(null);
  const prefix = Math.max(changes.value.prefix.length, trace.prompt_tokens ?? 0);
  const columns = useMemo(() => tree(trace, prefix), [trace]);
  const rank = Math.min(number("beam.rank") ?? 0, trace.hypotheses.length - 1);
  const chosen = path(columns, trace.hypotheses[rank]);
  const pick = (node: Node) => {
    const ended = trace.hypotheses.findIndex(({ ids }) => String(ids) === String(node.ids));
    if (ended >= 0) set({ "beam.rank": ended || null });
    else if (node.ids.every(sayable)) {
      active.value = null;
      change({ prefix: node.ids });
      set({ "beam.rank": null });
    }
  };
  const press = (event: KeyboardEvent) => {
    const from = active.value ?? columns[0]?.[0];
    if (event.key === "Enter" && active.value) pick(active.value);
    else if (event.key === "Escape") change({ prefix: [] });
    else if (event.key === "Home") active.value = columns[0][0];
    else if (event.key === "End") active.value = chosen.at(-1) ?? from;
    else if (event.key.startsWith("Arrow")) active.value = active.value ? neighbor(columns, from, event.key) : from;
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <Prefix trace={trace} columns={columns} />
      <Tree
        columns={columns}
        marks={task.value.paired ? trace.source_tokens.map(visible) : undefined}
        chosen={chosen}
        active={active.value}
        onActive={(node) => (active.value = node)}
        onPick={pick}
        onKey={press}
      />
      <p class="readout" role="status">
        <NodeReadout node={active.value} />
      </p>
      <Legend />
      <Ranking title={task.value === TASKS.translation ? "Translations found" : "Answers found"} note={scoring(trace.search)} all={trace.hypotheses} rank={rank} field="beam.rank" />
      <Numbers
        caption="all candidates of the search, step by step"
        corner="prefix"
        columns={[<>step</>, <>token</>, <>log-probability</>, <>score</>, <>result</>]}
        rows={columns.flat().map((node) => ({
          head: textOf(node.parent),
          cells: [<>{node.t + 1}</>, node.token, node.logProbability, node.score, <>{FATES[node.fate]}</>],
        }))}
      />
    </>
  );
}

/** The tokens up to a node. */
function textOf(node: Node | null): string {
  const tokens: string[] = [];
  for (let at = node; at && at.t >= 0; at = at.parent) tokens.unshift(at.token);
  return joined(tokens);
}

function Prefix({ columns }: { trace: Trace; columns: Node[][] }): JSX.Element | null {
  const { prefix } = changes.value;
  const last = columns[prefix.length - 1]?.[0];
  if (!last) return null;
  return (
    <p class="changes">
      <span>
        continues from <Say>{textOf(last)}</Say>
      </span>
      <button type="button" class="plain" onClick={() => change({ prefix: [] })}>
        Start over
      </button>
      <a href={link("whatif")}>Compare with the unchanged search</a>
    </p>
  );
}

function NodeReadout({ node }: { node: Node | null }): JSX.Element {
  if (!node) return <span class="quiet">Point at a token, or move with the arrow keys. Click or Enter continues the search from there. The number below a token is its score.</span>;
  return (
    <>
      {node.parent && node.parent.t >= 0 ? (
        <>
          <Say>{textOf(node.parent)}</Say> <span class="quiet">then</span>{" "}
        </>
      ) : null}
      <Token of={node.token} /> {percent(Math.exp(node.logProbability))}
      <span class="quiet">
        , log-probability so far {fixed(node.sum, 2)}, score {fixed(node.score, 2)}, {node.given ? "forced" : FATES[node.fate]}
        {node.ids.slice(0, -1).every(sayable) && (sayable(node.id) || node.id === END) ? "" : "; unknown words cannot be forced"}
      </span>
    </>
  );
}

const Legend = (): JSX.Element => (
  <ul class="legend" aria-label="What the marks mean">
    <li class="chosen">selected {task.value.answer}</li>
    <li class="kept">kept</li>
    <li class="finished">finished</li>
    <li class="pruned">pruned</li>
  </ul>
);
