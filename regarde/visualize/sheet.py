"""The style and the script of the page in html.py: constant texts, which the page allows by their hash."""

from __future__ import annotations

from regarde.visualize.style import DARK, LIGHT
from regarde.visualize.svg import FONTS

STYLE = f"""
:root {{
  color-scheme: light dark;
  --paper: light-dark({LIGHT.paper}, {DARK.paper}); --ground: color-mix(in srgb, var(--paper), var(--rule) 40%);
  --rule: light-dark({LIGHT.rule}, {DARK.rule}); --text: light-dark({LIGHT.ink}, {DARK.ink});
  --faint: light-dark({LIGHT.faint}, {DARK.faint}); --mark: light-dark({LIGHT.link}, {DARK.link});
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 {FONTS}; }}
main {{ max-width: 1280px; margin: 0 auto; padding: 24px 20px 48px; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.1rem; margin: 0 0 8px; overflow-wrap: anywhere; }}
.hint {{ margin: 0 0 20px; color: var(--faint); }}
section {{ background: var(--paper); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px; margin: 0 0 20px; }}
.pair {{ margin: 0 0 4px; overflow-wrap: anywhere; }}
.pair .arrow {{ color: var(--faint); padding: 0 6px; }}
.readout {{ margin: 0 0 8px; min-height: 1.6em; color: var(--faint); font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }}
.readout b {{ color: var(--mark); }}
.charts {{ display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: flex-start; }}
.chart {{ max-width: 100%; overflow-x: auto; }}
[data-more~="left"] {{ --left: 2.2rem; }} [data-more~="right"] {{ --right: 2.2rem; }}
[data-more]:not([data-more=""]) {{ mask-image: linear-gradient(to right, transparent, #000 var(--left, 0px),
  #000 calc(100% - var(--right, 0px)), transparent); }}
.chart svg {{ display: block; max-width: 100%; height: auto; }}
.chart.wide svg {{ max-width: none; }}
.chart [data-s], .chart [data-t] {{ transition: opacity 120ms; }}
.chart text[data-s], .chart text[data-t] {{ cursor: default; outline: none; }}
.chart text:focus-visible {{ text-decoration: underline; }}
.looking .cells rect[data-s]:not(.on) {{ opacity: .35; }}
.looking .line:not(.on) {{ opacity: .08; }}
.looking text[data-s]:not(.on), .looking text[data-t]:not(.on) {{ opacity: .4; }}
.chart .at {{ fill: var(--mark); font-weight: 700; }}
details {{ margin-top: 12px; }}
summary {{ cursor: pointer; color: var(--faint); width: max-content; }}
.numbers {{ overflow: auto; max-height: 70vh; margin-top: 8px; }}
table {{ border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 3px 8px; border-bottom: 1px solid var(--rule); text-align: end; white-space: nowrap; }}
th {{ font-weight: 600; background: var(--paper); }}
thead th {{ position: sticky; top: 0; }}
tbody th {{ position: sticky; left: 0; }}
@media (max-width: 640px) {{
  main {{ padding: 16px 8px 32px; }}
  section {{ padding: 14px 12px; border-radius: 10px; }}
}}
@media (prefers-reduced-motion: reduce) {{ .chart [data-s], .chart [data-t] {{ transition: none; }} }}
@media print {{ body {{ background: none; }} section {{ break-inside: avoid; border: 0; }}
  .hint, .readout {{ display: none; }} }}
"""

SCRIPT = """
"use strict";
for (const box of document.querySelectorAll(".chart, .numbers")) {  // an edge that hides content fades out
  const hint = () => {
    const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    box.dataset.more = (left ? "left " : "") + (right ? "right" : "");
  };
  box.addEventListener("scroll", hint, {passive: true});
  new ResizeObserver(hint).observe(box);
}
for (const map of document.querySelectorAll("section")) {
  const table = map.querySelector("table"), readout = map.querySelector(".readout");
  const name = cell => cell.textContent;
  const source = [...table.tHead.rows[0].cells].slice(1).map(name);
  const target = [...table.tBodies[0].rows].map(row => name(row.cells[0]));
  const weights = [...table.tBodies[0].rows].map(row => [...row.cells].slice(1).map(cell => Number(name(cell))));
  const parts = [...map.querySelectorAll(".chart [data-s], .chart [data-t]")].map(element => ({
    element, s: element.dataset.s === undefined ? -1 : Number(element.dataset.s),
    t: element.dataset.t === undefined ? -1 : Number(element.dataset.t),
  }));
  const top = Math.max(...weights.map(row => Math.max(...row)));

  const word = text => { const b = document.createElement("b"); b.append(bdi(text)); return b; };
  const bdi = text => { const e = document.createElement("bdi"); e.dir = "auto"; e.textContent = text; return e; };
  const strongest = (labels, values) => labels.map((label, i) => [label, values[i]])
    .filter(([, value]) => value >= 0.05 * top).sort((a, b) => b[1] - a[1]).slice(0, 5)
    .flatMap(([label, value], i) => [i ? ", " : " ", word(label), " " + value.toFixed(2)]);

  function tell(s, t) {
    if (s >= 0 && t >= 0)
      readout.replaceChildren(word(source[s]), " → ", word(target[t]), " " + weights[t][s].toFixed(3));
    else if (t >= 0) readout.replaceChildren(word(target[t]), " attends to", ...strongest(source, weights[t]));
    else {
      const column = weights.map(row => row[s]);
      readout.replaceChildren(word(source[s]), " is attended to by", ...strongest(target, column));
    }
  }

  function look(s, t) {
    map.classList.add("looking");
    for (const part of parts) {
      const cell = part.s >= 0 && part.t >= 0;
      const line = part.element.classList.contains("line");
      const at = !cell && (part.s >= 0 ? part.s === s : part.t === t);
      let on = at;
      if (line) on = (s < 0 || part.s === s) && (t < 0 || part.t === t);
      else if (cell) on = part.s === s || part.t === t;
      else if (!at && s < 0) on = part.s >= 0 && weights[t][part.s] >= 0.1 * top;
      else if (!at && t < 0) on = part.t >= 0 && weights[part.t][s] >= 0.1 * top;
      part.element.classList.toggle("on", on);
      part.element.classList.toggle("at", at);
    }
    tell(s, t);
  }

  function rest() {
    map.classList.remove("looking");
    for (const { element } of parts) element.classList.remove("on", "at");
    readout.replaceChildren();
  }

  const attend = event => {
    const element = event.target.closest("[data-s], [data-t]");
    if (!element) return rest();
    look(Number(element.dataset.s ?? -1), Number(element.dataset.t ?? -1));
  };
  for (const chart of map.querySelectorAll(".chart")) {
    chart.addEventListener("pointerover", attend);
    chart.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") rest(); });
    chart.addEventListener("focusin", attend);
    chart.addEventListener("focusout", rest);
  }
  for (const text of map.querySelectorAll(".chart.lines text[data-s], .chart.lines text[data-t]")) {
    text.setAttribute("tabindex", "0");
  }
}
"""
