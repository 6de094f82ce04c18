// Formulas as MathML, which browsers draw and screen readers read, written the way one would say them:
//   m`e_{t,j} = v^⊤ tanh(W s_{t−1} + U h_j)`
// `_` and `^` with {…}, \frac{…}{…}, \tilde{…}, \sqrt{…}, \sum_{…}, Greek letters; any other command is a name. A
// number put in is a number; a string put in is text, never markup. `latex` draws a formula that a model states.
import type { ComponentChild, JSX } from "preact";
import { fixed, visible } from "../text";
import { useScrollHint } from "./scrolling";

type Given = number | string;
const LETTERS: Record<string, string> = {
  top: "⊤", alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", theta: "θ", lambda: "λ", mu: "μ", pi: "π",
  rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", psi: "ψ", omega: "ω",
};
const FIRST = 0xe000; // values stand in the text as characters that no text uses

export function m(literal: TemplateStringsArray, ...given: Given[]): JSX.Element {
  const text = literal.raw.reduce((all, part, i) => all + String.fromCodePoint(FIRST + i - 1) + part);
  return <math>{new Reader(text, given).row()}</math>;
}

export const latex = (formula: string): JSX.Element => <math>{new Reader(formula, []).row()}</math>;

/** The same as its own line. */
export const Formula = ({ children }: { children: JSX.Element }): JSX.Element => (
  <div ref={useScrollHint<HTMLDivElement>()} class="formula">
    {children}
  </div>
);

class Reader {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly given: Given[],
  ) {}

  /** Everything up to the end, or to the brace that closes the group. */
  row(): JSX.Element {
    const parts: ComponentChild[] = [];
    while (this.at < this.text.length && this.text[this.at] !== "}") {
      if (/\s/.test(this.text[this.at])) this.at += 1;
      else parts.push(this.scripted());
    }
    return <mrow>{parts}</mrow>;
  }

  /** One thing with what hangs on it below and above. */
  private scripted(): JSX.Element {
    const sum = this.text.startsWith("\\sum", this.at);
    const base = this.atom();
    let below: JSX.Element | null = null;
    let above: JSX.Element | null = null;
    while (this.text[this.at] === "_" || this.text[this.at] === "^") {
      const under = this.text[this.at] === "_";
      this.at += 1;
      if (under) below = this.atom();
      else above = this.atom();
    }
    if (sum && below) return <munder>{[base, below]}</munder>;
    if (below && above) return <msubsup>{[base, below, above]}</msubsup>;
    if (below) return <msub>{[base, below]}</msub>;
    if (above) return <msup>{[base, above]}</msup>;
    return base;
  }

  private group(): JSX.Element {
    this.at += 1;
    const inside = this.row();
    this.at += 1;
    return inside;
  }

  private atom(): JSX.Element {
    const c = this.text[this.at] ?? "";
    if (!c) return <mrow />;
    if (c === "{") return this.group();
    if (c === "\\") return this.command();
    const value = this.given[c.charCodeAt(0) - FIRST];
    if (value !== undefined) {
      this.at += 1;
      return typeof value === "number" ? <mn>{fixed(value)}</mn> : <mtext>{visible(value)}</mtext>;
    }
    const word = /^(?:[a-zA-Z]{2,}|[\d.]+|.)/u.exec(this.text.slice(this.at))![0];
    this.at += word.length;
    if (/^\d/.test(word)) return <mn>{word}</mn>;
    return /^[\p{L}⊤]/u.test(word) ? <mi>{word}</mi> : <mo>{word === "-" ? "−" : word}</mo>;
  }

  /** √ with parentheses, because the line over a root is drawn only with a font for mathematics, which may be missing. */
  private root(): JSX.Element {
    const one = /^\{[^\s{}]\}/.test(this.text.slice(this.at));
    return <mrow>{[<mo>√</mo>, one ? null : <mo>(</mo>, this.group(), one ? null : <mo>)</mo>]}</mrow>;
  }

  private command(): JSX.Element {
    const name = /^\\([a-zA-Z]*)/.exec(this.text.slice(this.at))![1];
    this.at += name.length + 1;
    const letter = LETTERS[name];
    switch (name) {
      case "frac":
        return <mfrac>{[this.group(), this.group()]}</mfrac>;
      case "sqrt":
        return this.root();
      case "tilde":
        return <mover accent={true}>{[this.group(), <mo>~</mo>]}</mover>;
      case "sum":
        return <mo>∑</mo>;
      default:
        if (letter) return <mi>{letter}</mi>;
        return (
          <mrow>
            <mspace width="0.17em" />
            <mi>{name}</mi>
          </mrow>
        );
    }
  }
}
