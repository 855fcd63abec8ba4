"""A document as a PDF of A4 pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import KeepTogether, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from steerboard.evaluation.report.document.fonts import BOLD, PLAIN, register, runs
from steerboard.sharing.blocks import Block, Cell, Document, Grid, Items, Text

_DIM, _LINE, _MARK, _WARN = HexColor("#5c6670"), HexColor("#ced4da"), HexColor("#0b7285"), HexColor("#c2410c")
_MARGIN = 18 * mm
_WIDTH = A4[0] - 2 * _MARGIN
# The first column of a table is wider by this factor; figures need at least this width before their font shrinks.
_FIRST, _LEAST = 1.6, 19 * mm
_COLUMNS = 10


def pdf_of(document: Document) -> bytes:
    """The whole file. The same document always gives the same bytes."""
    styles = _styles()
    file = BytesIO()
    made = SimpleDocTemplate(
        file,
        pagesize=A4,
        leftMargin=_MARGIN,
        rightMargin=_MARGIN,
        topMargin=_MARGIN,
        bottomMargin=_MARGIN,
        title=document.title,
        creator="Steerboard",
        author="",
        invariant=1,
    )

    def number(canvas: Any, page: Any) -> None:
        canvas.setFont(PLAIN, 7)
        canvas.setFillColor(_DIM)
        canvas.drawRightString(A4[0] - _MARGIN, 10 * mm, f"{page.page}")

    made.build(list(_flow(document, styles)), onFirstPage=number, onLaterPages=number)
    return file.getvalue()


@cache
def _styles() -> dict[str, ParagraphStyle]:
    register()

    def style(name: str, size: float, **more: Any) -> ParagraphStyle:
        given = {"fontName": PLAIN, "leading": size * 1.4, "splitLongWords": 1, **more}
        return ParagraphStyle(name, fontSize=size, **given)

    return {
        "title": style("title", 11, fontName=BOLD),
        "answer": style("answer", 14, fontName=BOLD, spaceBefore=8, spaceAfter=6),
        "text": style("text", 8.5, spaceAfter=3),
        "small": style("small", 7.5, textColor=_DIM, spaceAfter=3),
        "against": style("against", 8.5, fontName=BOLD, textColor=_WARN, spaceBefore=6, spaceAfter=2),
        "item": style("item", 8.5, leftIndent=9, bulletIndent=0),
        "source": style("source", 10.5, fontName=BOLD, textColor=_MARK, spaceBefore=14, spaceAfter=2),
        "caption": style("caption", 8.5, fontName=BOLD, spaceBefore=8, spaceAfter=3, keepWithNext=1),
        "head": style("head", 6.5, fontName=BOLD),
        "cell": style("cell", 7),
    }


def _flow(document: Document, styles: dict[str, ParagraphStyle]) -> Iterator[Any]:
    yield _paragraph(document.title, styles["title"])
    yield _paragraph(document.about, styles["small"])
    yield _paragraph(document.answer, styles["answer"])
    # Paragraphs, and no table: a row of a table has to fit on a page.
    yield from (_paragraph(f"{name}: {value}", styles["text"]) for name, value in document.facts)
    if document.against:
        yield _paragraph("Reservations", styles["against"])
        yield from (_paragraph(text, styles["item"], bullet="•") for text in document.against)
    for block in document.blocks:
        yield from _block(block, styles)
    for fold in document.folds:
        yield KeepTogether(
            [_paragraph(fold.title, styles["source"]), _paragraph(fold.headline, styles["text"]), Spacer(0, 1)]
        )
        for block in fold.blocks:
            yield from _block(block, styles)


def _block(block: Block, styles: dict[str, ParagraphStyle]) -> Iterator[Any]:
    if isinstance(block, Text):
        yield _paragraph(block.text, styles["small" if block.small else "text"])
    elif isinstance(block, Items):
        yield _paragraph(block.title, styles["caption"])
        yield from (_paragraph(text, styles["item"], bullet="•") for text in block.texts)
    else:
        yield _paragraph(block.title, styles["caption"])
        if block.note:
            yield _paragraph(block.note, styles["small"])
        yield from (_table(part, styles) for part in _parts(block))


def _parts(grid: Grid) -> Iterator[Grid]:
    """Tables that fit on a page, each with the first column."""
    for start in range(1, len(grid.heads), _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        rows = tuple((row[0], *row[columns]) for row in grid.rows)
        yield Grid(grid.title, (grid.heads[0], *grid.heads[columns]), rows)


def _table(grid: Grid, styles: dict[str, ParagraphStyle]) -> Table:
    columns = len(grid.heads)
    share = _WIDTH / (_FIRST + columns - 1)
    widths = [share * _FIRST, *([share] * (columns - 1))]
    # Narrow columns have smaller letters.
    scale = min(1.0, max(0.5, share / _LEAST))
    cell, head = (_scaled(styles[name], scale) for name in ("cell", "head"))
    rows = [
        [_paragraph(text, head) for text in grid.heads],
        *([_cell(content, cell) for content in row] for row in grid.rows),
    ]
    look: list[Any] = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.4, _LINE),
        *((side, (0, 0), (-1, -1), 2.5) for side in ("LEFTPADDING", "RIGHTPADDING", "TOPPADDING", "BOTTOMPADDING")),
    ]
    for y, row in enumerate(grid.rows, start=1):
        look += [
            ("BACKGROUND", (x, y), (x, y), _shade(content.shade))
            for x, content in enumerate(row)
            if content.shade is not None
        ]
    return Table(rows, colWidths=widths, repeatRows=1, style=TableStyle(look), hAlign="LEFT")


def _cell(cell: Cell, style: ParagraphStyle) -> Paragraph:
    detail = f'<br/><font size="{style.fontSize * 0.82:.1f}" color="#5c6670">{_plain(cell.detail)}</font>'
    return Paragraph(_plain(cell.text) + (detail if cell.detail else ""), style)


def _scaled(style: ParagraphStyle, scale: float) -> ParagraphStyle:
    return ParagraphStyle(
        f"{style.name} {scale:.2f}", parent=style, fontSize=style.fontSize * scale, leading=style.leading * scale
    )


def _paragraph(text: str, style: ParagraphStyle, bullet: str | None = None) -> Paragraph:
    return Paragraph(_plain(text), style, bulletText=bullet)


def _plain(text: str) -> str:
    """A paragraph has a markup of its own."""
    return "".join(
        escape(part) if font is None else f'<font name="{font}">{escape(part)}</font>' for font, part in runs(text)
    )


def _shade(share: float) -> Color:
    red, green, blue = (11, 114, 133) if share >= 0.5 else (217, 72, 15)
    depth = abs(share - 0.5) * 0.8
    return Color(*(1 - depth + depth * channel / 255 for channel in (red, green, blue)))
