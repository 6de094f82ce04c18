// A quantity: its formula as in the paper, and with the numbers of this step.
import type { ComponentChildren, JSX } from "preact";
import { Formula, latex, m } from "../components/math";
import { Say, Token } from "../components/tokens";
import { Vector } from "../components/vector";
import {
  cellNote,
  encoderFormula,
  nameOf,
  outputFormula,
  type Phase,
  type Plan,
  queryFormula,
  scoreName,
  stateFormula,
} from "../model";
import { chosen, model, part, trace } from "../session";
import { fixed, percent } from "../text";
import { length } from "../trace";
import { columns, context, contextNorm, description, energies, largest, moment, opened, plain, strongest, t, weights } from "./moment";

export function Quantity(): JSX.Element | null {
  const { phase, j } = opened.value;
  if (!description.value || !moment.value || !trace.value) return null;
  const at = j !== null && j < columns.value.length ? j : Math.max(0, strongest.value);
  const Show = SHOWN[phase];
  return (
    <section class="quantity" aria-label="Formula" aria-live="polite">
      <h2>{nameOf(description.value, phase)}</h2>
      <Show plan={description.value} j={at} />
    </section>
  );
}

interface Props {
  plan: Plan;
  j: number; // the source token in question
}

const Text = ({ children }: { children: ComponentChildren }): JSX.Element => <p class="prose">{children}</p>;
/** A formula, where the model states it. */
const Stated = ({ children }: { children: JSX.Element | null }): JSX.Element | null =>
  children ? <Formula>{children}</Formula> : null;
const stated = (formula: string | undefined): JSX.Element | null => (formula ? latex(formula) : null);
const source = (j: number): string => columns.value[j];

/** The first numbers of a vector. */
function begun(vector: number[]): JSX.Element {
  const [a, b, c] = vector;
  return vector.length > 3 ? m`( ${a} , ${b} , ${c} , … )` : m`( ${a} , ${b} )`;
}

function States({ plan, j }: Props): JSX.Element {
  const S = columns.value.length;
  const shown = opened.value.j === null && plan.place === "none" ? S - 1 : j; // the decoder uses the last state
  const state = trace.value!.states?.[shown];
  return (
    <>
      <Text>
        {plan.place === "back" ? `The model keeps a state of each of the ${S} tokens so far.` : `The encoder computes a state for each of the ${S} ${plan.place === "query" ? "tokens of the text" : "source tokens"}.`}
        {plan.place === "none" ? " Only the last one is used." : " Attention weighs these states."}
      </Text>
      <Stated>{encoderFormula(model.value!)}</Stated>
      <Formula>{m`j = 1 , … , S, S = ${String(S)}`}</Formula>
      {state ? (
        <>
          <Text>
            The state of <Token of={source(shown)} /> has {state.length} numbers:
          </Text>
          <Formula>
            <>
              {m`h_${String(shown + 1)} =`} {begun(state)}
            </>
          </Formula>
          <Vector values={state} top={largest.value} label={`the state of ${source(shown)}`} />
          <Formula>{m`|h_${String(shown + 1)}| = ${length(state)}`}</Formula>
        </>
      ) : null}
    </>
  );
}

function State(): JSX.Element {
  const before = moment.value!.branch.token;
  return (
    <>
      <Text>
        {t.value ? (
          <>
            The previous token is <Token of={before} />.
          </>
        ) : (
          "There is no previous token yet."
        )}{" "}
        The next state is computed.
      </Text>
      <Stated>{stateFormula(model.value!)}</Stated>
      {cellNote(model.value!) ? <Text>{cellNote(model.value!)}</Text> : null}
      <Formula>{m`t = ${String(t.value + 1)}, y_{t−1} = ${before}`}</Formula>
    </>
  );
}

function Scores({ plan, j }: Props): JSX.Element {
  const energy = energies.value?.[j];
  return (
    <>
      <Text>
        The score says how well the state of <Token of={source(j)} /> matches the query.
        {plan.score ? ` The score is ${scoreName(plan.score)}.` : null}
      </Text>
      <Stated>{stated(plan.formulas.score)}</Stated>
      <Stated>{queryFormula(plan)}</Stated>
      {plan.formulas.compared ? (
        <>
          <Text>{COMPARED[plan.mechanism] ?? "In this formula, the state is replaced by"}</Text>
          <Formula>{latex(plan.formulas.compared)}</Formula>
        </>
      ) : null}
      {plan.mechanism === "monotonic" ? <Text>A learned bias r is added to every score.</Text> : null}
      {energies.value ? (
        <Formula>{m`e_{${String(t.value + 1)},${String(j + 1)}} = ${fixed(energy)}`}</Formula>
      ) : (
        <Text>Choose one layer and one head to see its scores: the mean of several heads has none.</Text>
      )}
    </>
  );
}

const COMPARED: Record<string, string> = {
  coverage: "The score also depends on earlier attention: in its formula, the state is replaced by",
  "multi-head": "Each head projects state and query: in the formula, they are replaced by",
};

/** From large scores the largest is subtracted: the weights stay the same, and the numbers are readable. */
function Weights({ plan, j }: Props): JSX.Element {
  const [step, place] = [String(t.value + 1), String(j + 1)];
  const given = energies.value;
  return (
    <>
      <Text>{WEIGHING[plan.place === "back" ? "global" : plan.mechanism]?.replace("NORMALIZER", capital(plan.normalizer || "softmax")).replace("all source tokens", OF[plan.place] ?? "all source tokens") ?? `Attention of kind ${plan.mechanism} computes weights from the scores.`}</Text>
      <Stated>{stated(plan.formulas.weights)}</Stated>
      {given && given[j] !== null ? <Worked plan={plan} energies={given} j={j} /> : null}
      {given ? null : (
        <Formula>{m`α_{${step},${place}} = ${weights.value[j]}`}</Formula>
      )}
      <Text>
        The weight of <Token of={source(j)} /> is {fixed(weights.value[j])}
        {part.value.layer === null || part.value.head === null ? ", the mean of several heads" : ""}.
      </Text>
    </>
  );
}

/** What the scores are of, where there is no source and target. */
const OF: Partial<Record<Plan["place"], string>> = { back: "all tokens so far", query: "all tokens of the text" };

const capital = (name: string): string => name[0]?.toUpperCase() + name.slice(1);

const WEIGHING: Record<string, string> = {
  global: "NORMALIZER turns the scores of all source tokens into weights that add up to one.",
  coverage: "NORMALIZER turns the scores of all source tokens into weights that add up to one.",
  "local-m": "Scores within a window that moves with each step become weights; outside the window weights are zero.",
  "local-p": "Scores within a window around a predicted position become weights that decrease towards its edges.",
  monotonic: "Attention moves right from its last position and stops at the first token whose probability is at least one half.",
  "multi-head": "NORMALIZER turns the scores of each head into weights that add up to one.",
};

const NORMALIZERS = ["softmax", "sparsemax"]; // whose numbers are computed here

function Worked({ plan, energies: given, j }: { plan: Plan; energies: (number | null)[]; j: number }): JSX.Element {
  const weight = weights.value[j];
  const e = given[j]!;
  if (plan.mechanism === "monotonic") return <Formula>{m`σ(${e}) = ${1 / (1 + Math.exp(-e))}, α = ${weight}`}</Formula>;
  if (!(plan.mechanism in WEIGHING) || !NORMALIZERS.includes(plan.normalizer)) return <Formula>{m`e = ${e}, α = ${weight}`}</Formula>;
  if (plan.normalizer === "sparsemax") return <Formula>{m`${e} − τ = ${weight}`}</Formula>;
  const open = given.filter((each, i): each is number => each !== null && (weights.value[i] > 0 || i === j));
  const top = Math.max(...open);
  const shift = Math.abs(top) > 12 ? top : 0;
  const sum = open.reduce((all, each) => all + Math.exp(each - shift), 0);
  const share = Math.exp(e - shift) / sum;
  if (weight === 0) return <Formula>{m`e = ${e}, α = ${weight}`}</Formula>;
  const gauss = Math.abs(share - weight) > 2e-3; // a window that fades towards its edges
  const written = shift ? m`α = \frac{exp(${e} − ${shift})}{${sum}} = ${share}` : m`α = \frac{exp(${e})}{${sum}} = \frac{${Math.exp(e)}}{${sum}} = ${share}`;
  return (
    <>
      <Formula>{written}</Formula>
      {gauss ? <Formula>{m`${share} × ${weight / share} = ${weight}`}</Formula> : null}
    </>
  );
}

function Context({ plan }: Props): JSX.Element {
  const best = weights.value
    .map((weight, j) => ({ weight, j }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3);
  const rest = 1 - best.reduce((sum, { weight }) => sum + weight, 0);
  const [a, b, c] = [...best, { weight: 0, j: 0 }, { weight: 0, j: 0 }];
  const [A, B, C] = [a, b, c].map(({ j }) => String(j + 1));
  const states = trace.value!.states;
  const sizes = (context.value ?? []).map(Math.abs);
  const k = sizes.indexOf(Math.max(...sizes));
  return (
    <>
      <Text>The context is the sum of the states, each multiplied by its weight.</Text>
      <Stated>{stated(plan.formulas.context)}</Stated>
      <Formula>
        {best.length > 2
          ? m`c_{${String(t.value + 1)}} = ${a.weight} h_${A} + ${b.weight} h_${B} + ${c.weight} h_${C} + …`
          : m`c_{${String(t.value + 1)}} = ${a.weight} h_${A} + ${b.weight} h_${B}`}
      </Formula>
      {contextNorm.value === null ? null : <Formula>{m`|c_{${String(t.value + 1)}}| = ${contextNorm.value}`}</Formula>}
      {rest > 0.005 ? <Text>The weights of all other tokens add up to {percent(rest)}.</Text> : null}
      {context.value ? (
        <>
          <Text>
            The context has {context.value.length} components. The largest, number {k + 1}:
          </Text>
          <Formula>
            {m`${a.weight} × (${states![a.j][k]}) + ${b.weight} × (${states![b.j][k]}) + … = ${context.value[k]}`}
          </Formula>
          <Vector values={context.value} top={largest.value} label="the context" />
        </>
      ) : null}
    </>
  );
}

function Candidates({ plan }: Props): JSX.Element {
  const [first, second] = moment.value!.branch.candidates;
  const gate = moment.value!.branch.p_gen;
  const p = (each: { log_probability: number | null }) => Math.exp(each.log_probability ?? -Infinity);
  return (
    <>
      <Text>
        {plain.value ? "The state gives" : plan.place === "query" ? "The context gives" : "State and context give"} a probability for every{" "}
        {plan.place === "query" ? "label" : "token of the vocabulary"}.
      </Text>
      <Stated>{outputFormula(model.value!)}</Stated>
      {typeof gate === "number" ? <Mixed p={gate} /> : null}
      <Formula>{m`p(${first.token}) = exp(${first.log_probability ?? -Infinity}) = ${p(first)}`}</Formula>
      {second ? (
        <Text>
          <Token of={first.token} /> is {ratio(p(first) / p(second))} as likely as <Token of={second.token} />.
        </Text>
      ) : null}
    </>
  );
}

/** See et al. 2017: the vocabulary and the source tokens share the probability. */
function Mixed({ p }: { p: number }): JSX.Element {
  const mapped = (model.value!.settings.copying as { kind?: string } | undefined)?.kind === "mapped";
  return (
    <>
      <Text>
        This model also copies{mapped ? ", and a learned table says what a source token becomes" : " source tokens"}. A gate says how much of the
        probability is that of the vocabulary: {percent(p)}.
      </Text>
      <Formula>{m`p_{\gen} = σ(w_h c_t + w_s s_t + w_x y_{t−1} + b) = ${p}`}</Formula>
      <Formula>
        {mapped
          ? m`P(w) = p_{\gen} p(w) + (1 − p_{\gen}) \sum_j α_{t,j} \softmax(M_{x_j})_w`
          : m`P(w) = p_{\gen} p(w) + (1 − p_{\gen}) \sum_{j : x_j = w} α_{t,j}`}
      </Formula>
    </>
  );
}

function ratio(value: number): string {
  if (value >= 1000) return "more than a thousand times";
  return value < 1.1 ? "about" : `${value.toFixed(value < 10 ? 1 : 0)} times`;
}

function ChosenToken(): JSX.Element {
  const scores = chosen.value!.token_scores;
  const before = scores.slice(0, t.value).reduce((sum, each) => sum + each, 0);
  const now = moment.value!.logProbability;
  const kind = String(trace.value!.search.kind ?? "");
  return (
    <>
      <Text>
        {HOW[kind] ?? ""} The token is <Say>{moment.value!.token}</Say>.
      </Text>
      <Formula>{m`log p(y_1 , … , y_t) = log p(y_1 , … , y_{t−1}) + log p(y_t)`}</Formula>
      <Formula>{m`${before + now} = ${before} + (${now})`}</Formula>
    </>
  );
}

const HOW: Record<string, string> = {
  greedy: "Greedy search takes the most probable token.",
  beam: "Beam search keeps several hypotheses; this is the path of the selected one.",
  sampling: "The token is sampled by its probability.",
  forced: "The token was given.",
};

const SHOWN: Record<Phase, (props: Props) => JSX.Element> = {
  states: States,
  state: State,
  scores: Scores,
  softmax: Weights,
  context: Context,
  words: Candidates,
  token: ChosenToken,
};
