// The architecture of a model, from the [model] table of its configuration: the place of attention, and formulas.
import type { JSX } from "preact";
import type { Formulas, Model, Settings } from "./api";
import { latex, m } from "./components/math";

/** Where attention is in a step of the decoder. */
export type Place = "before" | "inside" | "after" | "bottom" | "layers" | "none" | "alone" | "query" | "back" | "somewhere";

export type Phase = "states" | "state" | "scores" | "softmax" | "context" | "words" | "token";

export interface Plan {
  place: Place;
  paper: string;
  words: string; // the place, in words
  phases: Phase[];
  score: string; // its kind
  mechanism: string;
  normalizer: string;
  window: number;
  kind: string; // of the model
  formulas: Formulas;
}

const PLACES: Record<string, [Place, string, string]> = {
  bahdanau: ["before", "Bahdanau et al. 2015", "Attention before the step: the previous state is the query, and the context is an input of the next state."],
  conditional: ["inside", "Sennrich et al. 2017", "Attention inside the step, between its two transitions."],
  luong: ["after", "Luong et al. 2015", "Attention after the step: the new state is the query, and is combined with the context."],
  gnmt: ["bottom", "Wu et al. 2016", "The bottom layer gives the query, and the context is an input of every layer."],
  transformer: ["layers", "Vaswani et al. 2017", "Every layer attends to the source with several heads."],
  sutskever: ["none", "Sutskever et al. 2014", "No attention: the decoder starts from the last state of the encoder and gets nothing else from the source."],
  classifier: ["query", "Yang et al. 2016", "Learned queries attend to the states of the text, and what they find gives the label."],
  "attentive-lm": ["back", "Daniluk et al. 2017", "The model attends to its own earlier states, and predicts from its state and what it finds."],
  "transformer-lm": ["back", "Radford et al. 2018", "Every layer attends to the tokens so far with several heads."],
  "recurrent-lm": ["alone", "Mikolov et al. 2010", "No attention: the state is all that the model keeps of the text so far."],
  cho: ["none", "Cho et al. 2014", "No attention: the last state of the encoder is an input of every step."],
};

const PHASES: Record<Place, Phase[]> = {
  before: ["states", "scores", "softmax", "context", "state", "words", "token"],
  bottom: ["states", "scores", "softmax", "context", "state", "words", "token"],
  inside: ["states", "state", "scores", "softmax", "context", "words", "token"],
  after: ["states", "state", "scores", "softmax", "context", "words", "token"],
  layers: ["states", "state", "scores", "softmax", "context", "words", "token"],
  somewhere: ["states", "state", "scores", "softmax", "context", "words", "token"],
  query: ["states", "scores", "softmax", "context", "words", "token"],
  back: ["states", "state", "scores", "softmax", "context", "words", "token"],
  none: ["states", "state", "words", "token"],
  alone: ["state", "words", "token"],
};

export const NAMES: Record<Phase, string> = {
  states: "Encoder states",
  state: "Decoder state",
  scores: "Scores",
  softmax: "Weights",
  context: "Context",
  words: "Candidates",
  token: "Token",
};

/** The context of attention that mixes the states themselves, as regarde/attention/interface.py states it. */
export const MIXTURE = "c_t = \\sum_j \\alpha_{t,j} h_j";

const table = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** What a model calls its phases, where it is not a translator. */
const OTHER_NAMES: Partial<Record<Place, Partial<Record<Phase, string>>>> = {
  query: { states: "States of the text", token: "Label" },
  back: { states: "Earlier states", state: "State" },
  alone: { state: "State" },
};
export const nameOf = (plan: Plan, phase: Phase): string => OTHER_NAMES[plan.place]?.[phase] ?? NAMES[phase];

/** A classifier that pools states without attention. */
const POOLED: [Place, string, string] = ["none", "", "No attention: the last state of the text gives the label."];

/** A model of another kind: whether it has attention is known, but not where. */
function unlisted({ settings, layers }: Model): [Place, string, string] {
  if (layers ?? (settings.attention ? 1 : 0))
    return ["somewhere", "", `A model of kind ${settings.kind}: its decoder computes a context with attention.`];
  return ["none", "", `A model of kind ${settings.kind}, without attention.`];
}

export function plan(model: Model): Plan {
  const { settings } = model;
  const pooled = settings.kind === "classifier" && model.layers === 0;
  const [place, paper, words] = pooled ? POOLED : (PLACES[settings.kind] ?? unlisted(model));
  const attention = table(settings.attention);
  return {
    place,
    paper,
    words,
    phases: PHASES[place],
    score: String(table(attention.score).kind ?? ""),
    mechanism: String(attention.kind ?? ""),
    normalizer: String(attention.normalizer ?? ""),
    window: Number(attention.window ?? 0),
    kind: settings.kind,
    formulas: place === "query" ? { compared: "u_j = \\tanh(W h_j + b)", query: "q_t = q", ...model.formulas } : (model.formulas ?? {}),
  };
}

/** The formula of the query; null for a model of another kind that does not state it. */
export function queryFormula({ place, formulas }: Plan): JSX.Element | null {
  if (formulas.query) return latex(formulas.query);
  switch (place) {
    case "before":
      return m`q_t = s_{t−1}`;
    case "inside":
      return m`q_t = s′_t`;
    case "after":
      return m`q_t = h_t`;
    case "bottom":
      return m`q_t = h^1_{t−1}`;
    case "layers":
      return m`q_t = x′_t`;
    default:
      return null;
  }
}

const CELLS: Record<string, string> = { paper: "GRU", gru: "GRU", "torch-gru": "GRU", lstm: "LSTM", simple: "RNN" };

/** The name of a recurrent cell in a formula. */
const cell = ({ cell: kind }: Settings): string => CELLS[String(kind ?? "paper")] ?? String(kind);

/** What a formula does not say about the cell. */
export const cellNote = ({ settings }: Model): string =>
  settings.cell === "torch-gru" ? "The cell is a GRU whose reset gate acts after the matrix product, as in PyTorch and cuDNN." : "";

const SCORES: Record<string, string> = {
  dot: "the dot product (Luong et al. 2015)",
  "scaled-dot": "the scaled dot product (Vaswani et al. 2017)",
  general: "general, a bilinear form (Luong et al. 2015)",
  additive: "additive (Bahdanau et al. 2015)",
  "normed-additive": "additive with weight normalization (Salimans and Kingma 2016)",
  concat: "concat (Luong et al. 2015)",
  location: "location-based (Luong et al. 2015)",
  gaussian: "the logarithm of a Gaussian kernel",
};

/** The name of a score in the literature; one of another kind has its own name. */
export const scoreName = (kind: string): string => SCORES[kind] ?? kind;

/** The formula of the decoder's state. */
export function stateFormula({ settings, formulas }: Model): JSX.Element | null {
  if (formulas?.state) return latex(formulas.state);
  const step = cell(settings);
  switch (settings.kind) {
    case "bahdanau":
      return m`s_t = ${step}([y_{t−1} ; c_t], s_{t−1})`;
    case "conditional":
      return m`s_t = ${step}_2(c_t, s′_t)`;
    case "luong":
      return settings.feeding === false
        ? m`h_t = ${step}(y_{t−1}, h_{t−1})`
        : m`h_t = ${step}([y_{t−1} ; \tilde{h}_{t−1}], h_{t−1})`;
    case "gnmt":
      return m`h^l_t = ${step}([h^{l−1}_t ; c_t], h^l_{t−1})`;
    case "transformer":
      return m`x′_t = x_t + SelfAttention(x_1 , … , x_t)`;
    case "cho":
      return m`s_t = ${step}(y_{t−1}, s_{t−1}, c)`;
    case "sutskever":
      return m`s_t = ${step}(y_{t−1}, s_{t−1})`;
    default:
      return null;
  }
}

/** The formula of the probabilities of the next token. */
export function outputFormula({ settings: { kind, readout }, formulas }: Model): JSX.Element | null {
  if (formulas?.output) return latex(formulas.output);
  switch (kind) {
    case "luong":
      return m`p(y_t) = softmax(W_s tanh(W_c [c_t ; h_t]))`;
    case "bahdanau":
      return readout === "current"
        ? m`p(y_t) = softmax(W_o maxout(U_o s_t + V_o y_{t−1} + C_o c_t))`
        : m`p(y_t) = softmax(W_o maxout(U_o s_{t−1} + V_o y_{t−1} + C_o c_t))`;
    case "conditional":
      return m`p(y_t) = softmax(W_o maxout(U_o s_t + V_o y_{t−1} + C_o c_t))`;
    case "transformer":
      return m`p(y_t) = softmax(E x_t)`;
    case "gnmt":
      return m`p(y_t) = softmax(W h^L_t)`;
    case "cho":
      return m`p(y_t) = softmax(G maxout(O_h s_t + O_y y_{t−1} + O_c c))`;
    case "sutskever":
      return m`p(y_t) = softmax(W s_t)`;
    default:
      return null;
  }
}

/** The formula of the encoder's states. */
export function encoderFormula({ settings, formulas }: Model): JSX.Element | null {
  if (formulas?.encoder) return latex(formulas.encoder);
  if (!(settings.kind in PLACES)) return null;
  const { kind, reverse } = table(settings.encoder);
  if (settings.kind === "transformer") return m`h = Encoder(x_1 , … , x_S)`;
  if (kind === "bidirectional") return m`h_j = [h^→_j ; h^←_j]`;
  if (kind === "bottom-bidirectional") return m`h_j = ${cell(settings)}(h^{L−1}_j, h_{j−1})`;
  return reverse ? m`h_j = ${cell(settings)}(x_j, h_{j+1})` : m`h_j = ${cell(settings)}(x_j, h_{j−1})`;
}
