"""The style of the page in page.py, a constant, because the page's security policy contains its hash."""

from __future__ import annotations

from regarde.visualize.svg import FONTS

STYLE = f"""
:root {{
  color-scheme: light dark;
  --ground: light-dark(#eef0f3, #0b0d11); --paper: light-dark(#ffffff, #14171d); --rule: light-dark(#d8dce2, #2b313b);
  --text: light-dark(#1d2330, #e8eaee); --faint: light-dark(#5c6470, #9aa3b0); --mark: light-dark(#0f6f6c, #5fd6c2);
  --gain: light-dark(#e3f3ec, #12332b); --loss: light-dark(#faeae0, #3d2416);
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 {FONTS}; }}
main {{ max-width: 1240px; margin: 0 auto; padding: 28px 20px 48px; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; line-height: 1.3; margin: 0 0 4px; }}
h3 {{ font-size: 1rem; margin: 20px 0 6px; }}
p {{ margin: 0 0 12px; max-width: 78ch; overflow-wrap: anywhere; }}
a {{ color: var(--mark); }}
.faint {{ color: var(--faint); }}
section {{ background: var(--paper); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px; margin: 0 0 20px; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 5px 8px; border-bottom: 1px solid var(--rule); text-align: end; white-space: nowrap; }}
table.text th, table.text td {{ text-align: start; }}
table.text td {{ white-space: normal; min-width: 16ch; }}
thead th {{ vertical-align: bottom; color: var(--faint); font-weight: 500; white-space: normal; line-height: 1.25; }}
th:first-child {{ text-align: start; position: sticky; left: 0; background: var(--paper); }}
tbody th {{ font-weight: 600; }}
td small {{ display: block; color: var(--faint); font-size: .82em; font-weight: 400; line-height: 1.2; }}
.best {{ color: var(--mark); font-weight: 700; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 16px 28px; }}
figure {{ margin: 0; min-width: 0; }}
figcaption {{ color: var(--faint); font-size: .875rem; margin-bottom: 6px; }}
.charts figcaption::first-letter {{ text-transform: uppercase; }}
figure img {{ display: block; width: 100%; max-width: 720px; height: auto; }}
.maps {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 16px; }}
.maps svg {{ display: block; max-width: 100%; height: auto; }}
.pair {{ margin: 0 0 10px; }}
.words {{ display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 10px; padding: 0; list-style: none; }}
.words li {{ border-radius: 6px; padding: 1px 8px; background: var(--gain); }}
.words.lost li {{ background: var(--loss); }}
.words small {{ color: var(--faint); font-variant-numeric: tabular-nums; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 0 0 12px; }}
dt {{ color: var(--faint); }}
dd {{ margin: 0; overflow-wrap: anywhere; min-width: 0; }}
.examples {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 0 28px; }}
.examples dl {{ border-inline-start: 3px solid var(--rule); padding-inline-start: 12px; }}
details {{ margin-top: 10px; }}
summary {{ cursor: pointer; color: var(--faint); width: max-content; max-width: 100%; }}
@media (max-width: 640px) {{
  main {{ padding: 16px 8px 32px; }}
  section {{ padding: 14px 12px; border-radius: 10px; }}
  dl {{ grid-template-columns: 1fr; gap: 0; }}
  dd {{ margin-bottom: 6px; }}
  .charts figure {{ overflow-x: auto; }}
  .charts img {{ width: 500px; max-width: none; }}
}}
@media print {{
  :root {{ color-scheme: light; }}
  body {{ background: none; font-size: 12px; }}
  main {{ max-width: none; padding: 0; }}
  section {{ border: 0; padding: 8px 0; }}
  figure, .examples > div, tr {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
  .charts, .maps {{ grid-template-columns: 1fr 1fr; }}
  details:not([open]) {{ display: none; }}
  main .regarde .paper {{ fill: #ffffff; }} main .regarde text {{ fill: #1d2330; }}
  main .regarde .faint {{ fill: #5c6470; }}
  main .regarde .light {{ fill: #ffffff; }} main .regarde .dark {{ fill: #10131a; }}
  table {{ font-size: 9px; }}
  th, td {{ padding: 2px 4px; }}
}}
"""
