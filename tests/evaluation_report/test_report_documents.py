"""The report as one HTML file and as a PDF, of texts that mean harm."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pypdfium2
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.report.document.pdf import pdf_of
from steerboard.sharing.blocks import Cell, Document, Fold, Grid, Items, Text
from steerboard.sharing.html import page_of
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]
HARM = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' &amp; <b>\x00\u202e"
URL = "/api/v1/projects/default/evaluations"


class Tags(HTMLParser):
    """Everything that a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hostile() -> Document:
    grid = Grid(HARM, (HARM, HARM, "n"), ((Cell(HARM), Cell(HARM, HARM, 0.9), Cell("1", shade=0.1)),), note=HARM)
    blocks = (Text(HARM), Text(HARM, small=True), Items(HARM, (HARM,)), grid)
    return Document(HARM, HARM, HARM, ((HARM, HARM),), (HARM,), blocks, (Fold(HARM, HARM, blocks),))


def test_a_hostile_text_stays_a_text() -> None:
    page = Tags(page_of(hostile()))
    assert not page.tags & {"script", "img"}
    assert not {name for name in page.attributes if name.startswith("on")} | page.attributes & {"src", "href"}
    assert any("<script>alert(1)</script>" in text for text in page.texts)


def test_a_page_loads_and_runs_nothing(evaluated: Make) -> None:
    made = evaluated(prompts=12)
    for name in ("sft", "dt", "mle"):
        made.entrant(name)
    made.scores({"sft": [4] * 12, "dt": [7] * 12, "mle": [5] * 12})
    page = page_of(document_of(made.report()))
    assert "dt wins: against mle, the closest of 2 rivals" in page
    assert "Win rate of the row against the column" in page
    assert not re.search(r"https?:|url\(|@import|<script|<link|src=|href=", page)
    assert "default-src &#x27;none&#x27;" in page
    assert Tags(page).tags >= {"details", "summary", "table", "style"}


def test_a_cell_is_rounded_as_on_the_page(evaluated: Make) -> None:
    """12.5% is 13%, and the same the other way round 88%."""
    made = evaluated(prompts=24)
    for name in ("sft", "dt", "mle"):
        made.entrant(name)
    made.scores({"sft": [7] * 3 + [4] * 21, "dt": [5] * 24, "mle": [1] * 24})
    page = page_of(document_of(made.report()))
    assert "13%" in page
    assert "88%" in page


def test_who_has_no_figures_comes_last(evaluated: Make) -> None:
    made = evaluated(prompts=12)
    for name in ("gone", "sft", "dt"):
        made.entrant(name)
    read = [{"position": at, "a": name, "value": 4.0 + (name == "dt")} for at in range(12) for name in ("sft", "dt")]
    made.judge("single", [*read, {"position": 0, "a": "gone", "status": "unparsed"}])
    (fold, *_) = document_of(made.report()).folds
    means = next(block for block in fold.blocks if isinstance(block, Grid) and block.title == "Means")
    assert [row[0].text for row in means.rows] == ["dt", "sft", "gone"]
    assert any(
        isinstance(block, Text) and "24 of 25 verdicts count (1 unparsed)" in block.text for block in fold.blocks
    )


def test_names_of_annotators_are_in_no_document(evaluated: Make) -> None:
    made = evaluated(prompts=12)
    made.entrant("sft")
    made.entrant("dt")
    gold = {at: {"sft": 1, "dt": 2} for at in range(10)}
    made.campaign({"rosamund": {at: {"sft": 2, "dt": 1} for at in range(12)}}, gold=gold)
    report = made.report()
    assert any("rosamund" in warning for warning in report.warnings)
    assert "rosamund" not in page_of(document_of(report))


def test_a_hostile_text_makes_a_pdf_of_nothing_but_text() -> None:
    made = pdf_of(hostile())
    assert made.startswith(b"%PDF-")
    assert made.endswith(b"%%EOF\n")
    assert not re.search(rb"/JavaScript|/JS\b|/URI\b|/Launch|/EmbeddedFile", made)
    assert made == pdf_of(hostile())


def written(text: str) -> Document:
    """A document with the text in every place that takes one."""
    grid = Grid(text, (text, "n"), ((Cell(text), Cell("1", text)),), note=text)
    blocks = (Text(text), Items(text, (text,)), grid)
    return Document(text, text, text, ((text, text),), (text,), blocks, (Fold(text, text, blocks),))


def letters(pdf: bytes) -> list[tuple[str, str]]:
    """Each that is on the pages, with the font that it is set in, as a reader finds them."""
    runs, flags = [], ctypes.c_int()
    for page in pypdfium2.PdfDocument(pdf):
        read = page.get_textpage()
        for at in range(read.count_chars()):
            name = ctypes.create_string_buffer(200)
            pypdfium2.raw.FPDFText_GetFontInfo(read, at, name, len(name), flags)
            runs.append((read.get_text_range(at, 1), name.value.decode()))
    return runs


def title(pdf: bytes) -> str:
    """It comes after the number of the page."""
    return str(pypdfium2.PdfDocument(pdf)[0].get_textpage().get_text_bounded().splitlines()[1])


@pytest.mark.parametrize(
    ("text", "font"),
    [
        ("Ясность и вежливость", "NotoSans"),
        ("Σαφήνεια", "NotoSans"),
        ("Độ rõ ràng", "NotoSans"),
        ("وضوح الإجابة", "NotoSansArabic"),
        ("清晰与礼貌", "STSong-Light"),
        ("わかりやすさと礼儀", "HeiseiKakuGo-W5"),
        ("명확성", "HYGothic-Medium"),
        ("blunt, 清晰 и ясно", "STSong-Light"),
    ],
)
def test_a_pdf_has_every_script_in_a_font_that_has_it(text: str, font: str) -> None:
    made = pdf_of(written(text))
    assert made == pdf_of(written(text))
    assert title(made) == text
    texts = letters(made)
    assert any(font in name for _, name in texts)
    assert {letter for letter, name in texts if ord(letter[:1] or " ") > 0x2FF and "Vera" in name} <= {"•"}


def test_different_letters_look_different_in_a_pdf() -> None:
    looks = set()
    for letter in "ЖЩΨأب":
        page = pypdfium2.PdfDocument(pdf_of(Document(letter, "", "", (), (), (), ())))[0]
        looks.add(page.render().to_numpy().tobytes())
    assert len(looks) == 5


def test_what_no_font_has_is_written_as_its_code_point() -> None:
    assert title(pdf_of(written("good 😀, ⟁"))) == "good [U+1F600], [U+27C1]"


def test_a_pdf_has_room_for_many_entrants_with_long_names() -> None:
    names = [f"{'name' * 31}-{at}" for at in range(40)]
    rows = tuple((Cell(name), *(Cell("50%", shade=0.5) for _ in names)) for name in names)
    document = Document(
        "many",
        "",
        f"No winner: {', '.join(names)}.",
        (("Over", ", ".join(names)),),
        (),
        (Grid("Win rates", ("Entrant", *names), rows),),
    )
    made = pdf_of(document)
    pages = len(re.findall(rb"/Type /Page\b(?!s)", made))
    assert pages > 3


def test_html_and_pdf_are_files_of_those_who_may_read(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    made = Evaluated(sessions, project, prompts=12)
    made.entrant("sft")
    made.entrant("dt")
    made.scores({"sft": [4] * 12, "dt": [7] * 12})
    page = client.get(f"{URL}/vicuna/report.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-disposition"] == 'attachment; filename="vicuna-report.html"'
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "dt wins" in page.text
    file = client.get(f"{URL}/vicuna/report.pdf")
    assert (file.headers["content-type"], file.content[:5]) == ("application/pdf", b"%PDF-")
    for ending in ("html", "pdf"):
        refused = client.get(f"{URL}/vicuna/report.{ending}", headers={"Authorization": "Bearer nobody"})
        assert refused.status_code == 401
        assert client.get(f"{URL}/absent/report.{ending}").json()["code"] == "unknown_evaluation"
        unknown = client.get(f"{URL}/vicuna/report.{ending}", params={"baseline": "nobody"})
        assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_entrant")


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_every_share_has_a_colour(share: float) -> None:
    grid = Grid("x", ("a", "b"), ((Cell("a"), Cell("x", shade=share)),))
    assert "rgba(" in page_of(Document("x", "", "", (), (), (grid,)))
    assert pdf_of(Document("x", "", "", (), (), (grid,)))
