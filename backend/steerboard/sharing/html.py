"""A document, or a frozen page, as one HTML file: no scripts, nothing loaded from anywhere, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from steerboard.sharing.blocks import Block, Cell, Document, Fold, Grid, Items, Text
from steerboard.sharing.charts import COLOURS, svg_of
from steerboard.sharing.frozen import Chart, FrozenBlock, FrozenPage, Passage

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
:root { color-scheme: light dark; --line: #dee2e6; --dim: #5c6670; --mark: #0b7285; --warn: #d9480f; --wash: #f4f6f8 }
@media (prefers-color-scheme: dark) {
  :root { --line: #3b4148; --dim: #a6adb4; --mark: #3bc9db; --warn: #ffa94d; --wash: #22262b }
  body { background: #1a1d21; color: #e9ecef }
}
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.1rem; margin: 0 } h2 { font-size: 1rem; margin: 1.5rem 0 .25rem }
p { margin: .25rem 0; overflow-wrap: anywhere } .dim, .note { color: var(--dim); font-size: .87rem }
.answer { border: 1px solid var(--line); border-left: .3rem solid var(--mark); border-radius: .4rem;
  padding: 1rem 1.25rem; margin: 1rem 0 1.5rem }
.answer > p:first-child { font-size: 1.3rem; font-weight: 650; line-height: 1.35 }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .5rem 1.5rem; margin: 1rem 0 0 }
dt { color: var(--dim); font-size: .8rem } dd { margin: 0; overflow-wrap: anywhere }
.against { color: var(--warn); font-weight: 600; margin-top: 1rem } ul { margin: .25rem 0; padding-left: 1.2rem }
li { overflow-wrap: anywhere }
details { border-top: 1px solid var(--line); padding: .6rem 0 }
details:last-of-type { border-bottom: 1px solid var(--line) }
summary { cursor: pointer; overflow-wrap: anywhere } summary span { display: block }
.scroll { overflow-x: auto } table { border-collapse: collapse; margin: .25rem 0 .5rem; min-width: 50% }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top }
th:first-child, td:first-child { text-align: left } th { font-size: .8rem; font-weight: 600 }
td small { display: block; color: var(--dim); white-space: nowrap }
pre { font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line);
  border-radius: .4rem; padding: .6rem .9rem; margin: .4rem 0 0 }
td { overflow-wrap: anywhere; white-space: pre-line }
figure { margin: 0; break-inside: avoid } .scroll > svg { width: 100%; min-width: 34rem; height: auto }
figure text { font-size: 11px; fill: var(--dim) } .axis { stroke: var(--line) }
path { fill: none; stroke-width: 1.8 } .key { width: 24px; height: 8px; margin-right: .4rem }
.names { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .87rem }
.l0 { stroke: #1098ad } .l1 { stroke: #f08c00 } .l2 { stroke: #7048e8 } .l3 { stroke: #e03131 }
.l4 { stroke: #2f9e44 } .l5 { stroke: #c2255c } .l6 { stroke: #1971c2 } .l7 { stroke: #868e96 }
@media print {
  :root { --line: #ccc; --dim: #555; --mark: #0b7285; --warn: #a33 }
  body { background: #fff; color: #000; font-size: 10pt; max-width: none; padding: 0 }
  details::details-content { content-visibility: visible; block-size: auto }
  summary { list-style: none } table, .answer { break-inside: avoid } .scroll { overflow: visible }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
}
"""


def page_of(document: Document) -> str:
    """The whole file."""
    folds = "".join(_fold(fold) for fold in document.folds)
    return _file(document.title, document.about, f"{_answer(document)}{_blocks(document.blocks)}{folds}")


def frozen_page_of(page: FrozenPage) -> str:
    """The whole file."""
    return _file(page.title, page.about, "".join(_frozen_block(block) for block in page.blocks))


def _file(title: str, about: str, body: str) -> str:
    """`body`: HTML; the other texts are plain."""
    title = escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        f"<title>{title} · Steerboard</title><style>{_STYLE}</style></head><body><main>"
        f'<header><h1>{title}</h1><p class="dim">{escape(about)}</p></header>'
        f"{body}</main></body></html>\n"
    )


def _frozen_block(block: FrozenBlock) -> str:
    if isinstance(block, Grid):
        return _table(block)
    if isinstance(block, Passage):
        note = f'<p class="note">{escape(block.note)}</p>' if block.note else ""
        return f"<section><h2>{escape(block.title)}</h2>{note}<pre>{escape(block.text)}</pre></section>"
    return _chart(block)


def _chart(chart: Chart) -> str:
    names = "".join(
        '<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true">'
        f'<path class="l{line.place % COLOURS}" d="M0 4H24"/></svg>{escape(line.label)}</li>'
        for line in chart.lines
    )
    return (
        f"<figure><h2>{escape(chart.title)}</h2>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(chart.title)}, chart">{svg_of(chart)}</div>'
        f'<ul class="names">{names}</ul></figure>'
    )


def _answer(document: Document) -> str:
    facts = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in document.facts)
    against = f'<p class="against">Reservations</p>{_list(document.against)}' if document.against else ""
    return (
        f'<section class="answer"><p>{escape(document.answer)}</p>'
        f"{f'<dl>{facts}</dl>' if facts else ''}{against}</section>"
    )


def _fold(fold: Fold) -> str:
    return (
        f'<details><summary><b>{escape(fold.title)}</b><span class="dim">{escape(fold.headline)}</span></summary>'
        f"{_blocks(fold.blocks)}</details>"
    )


def _blocks(blocks: Iterable[Block]) -> str:
    return "".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p{' class=dim' if block.small else ''}>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return f"<h2>{escape(block.title)}</h2>{_list(block.texts)}"
    return _table(block)


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _table(grid: Grid) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in grid.heads)
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in grid.rows)
    note = f'<p class="note">{escape(grid.note)}</p>' if grid.note else ""
    return (
        f'<h2>{escape(grid.title)}</h2>{note}<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{escape(grid.title)}"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(cell: Cell) -> str:
    detail = f"<small>{escape(cell.detail)}</small>" if cell.detail else ""
    return f"<td{_shade(cell.shade)}>{escape(cell.text)}{detail}</td>"


def _shade(share: float | None) -> str:
    """Blue for wins and orange for losses, the stronger the further from 1/2."""
    if share is None:
        return ""
    red, green, blue = (11, 114, 133) if share >= 0.5 else (217, 72, 15)
    return f' style="background:rgba({red},{green},{blue},{abs(share - 0.5) * 0.8:.2f})"'
