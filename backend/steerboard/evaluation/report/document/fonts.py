"""Fonts of a PDF, each text in the ones that have its letters.

Vera comes with the PDF library, the Noto fonts with pinned packages: they are everywhere the same, and what a report
uses of them is embedded. Chinese, Japanese and Korean are set in fonts that the reader's machine has (Adobe's character
collections): one that could be embedded is larger than this whole package. Right-to-left text is ordered as a whole, so
that it reads rightly where it fits on a line. Scripts whose letters change with their neighbours, other than Arabic,
are set letter by letter; what no font has, such as an emoji, is written as its code point.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Iterator
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import fontpkg_noto_sans
import fontpkg_noto_sans_arabic
import reportlab
from arabic_reshaper import ArabicReshaper
from bidi.algorithm import get_display
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont, registerFontFamily
from reportlab.pdfbase.ttfonts import TTFont

PLAIN, BOLD = "Vera", "VeraBd"

_EMBEDDED = {
    PLAIN: Path(reportlab.__file__).parent / "fonts" / "Vera.ttf",
    BOLD: Path(reportlab.__file__).parent / "fonts" / "VeraBd.ttf",
    "NotoSans": fontpkg_noto_sans.ROOT / "files" / "NotoSans[wdth,wght].ttf",
    "NotoSansArabic": fontpkg_noto_sans_arabic.ROOT / "files" / "NotoSansArabic[wdth,wght].ttf",
}
# By a character set whose characters the collection of the font has.
_JAPANESE = "HeiseiKakuGo-W5"
_OF_READERS = {"STSong-Light": "gbk", _JAPANESE: "cp932", "HYGothic-Medium": "cp949", "MSung-Light": "big5"}
# Wide, fullwidth and halfwidth. These sets also have arrows and Cyrillic letters, which a reader may have no font for.
_EAST_ASIAN = ("W", "F", "H")
# Short vowels are drawn where they are written.
_SHAPES = ArabicReshaper({"delete_harakat": False, "support_ligatures": True})


class _Font(NamedTuple):
    name: str
    has: Callable[[str], bool]


@cache
def register() -> tuple[_Font, ...]:
    """Registers the fonts with the PDF library; all fonts, in the order in which they are tried."""
    fonts = []
    for name, path in _EMBEDDED.items():
        font = TTFont(name, str(path))
        registerFont(font)
        fonts.append(_Font(name, partial(_is_in, font.face.charToGlyph)))
    for name, encoding in _OF_READERS.items():
        registerFont(UnicodeCIDFont(name))
        fonts.append(_Font(name, partial(_reader_has, name, encoding)))
    for name in (*_EMBEDDED, *_OF_READERS):
        registerFontFamily(name, normal=name, bold=name, italic=name, boldItalic=name)
    return tuple(fonts)


def runs(text: str) -> Iterator[tuple[str | None, str]]:
    """The text in parts, from left to right, each with its font; None: the style's own."""
    plain, _, *others = register()
    # Control characters would end up in the file as they are.
    letters = (letter if letter.isprintable() else " " for letter in unicodedata.normalize("NFC", text))
    shown = _ordered("".join(letter for letter in letters if not "\ufe00" <= letter <= "\ufe0f"))
    for is_plain, group in groupby(shown, plain.has):
        part = "".join(group)
        yield from [(None, part)] if is_plain else _set(part, others)


def _set(text: str, fonts: list[_Font]) -> Iterator[tuple[str | None, str]]:
    """Sets the text in the one font that has all of it, or else letter by letter."""
    whole = next((font.name for font in fonts if all(map(font.has, text))), None)
    if whole is not None:
        yield whole, text
        return
    for letter in text:
        name = next((font.name for font in fonts if font.has(letter)), None)
        yield (None, f"[U+{ord(letter):04X}]") if name is None else (name, letter)


def _ordered(text: str) -> str:
    """The text from left to right as it is seen, with the forms that Arabic letters have next to each other."""
    if not any(unicodedata.bidirectional(letter) == "AL" for letter in text):
        return text
    ordered = get_display(_SHAPES.reshape(text))
    assert isinstance(ordered, str)
    return ordered


def _is_in(letters: Container[int], letter: str) -> bool:
    return ord(letter) in letters


def _reader_has(name: str, encoding: str, letter: str) -> bool:
    """Kana are Japanese alone, although other character sets have them: so are the Han characters among them."""
    if "\u3040" <= letter <= "\u30ff" and name != _JAPANESE:
        return False
    if unicodedata.east_asian_width(letter) not in _EAST_ASIAN:
        return False
    try:
        return bool(letter.encode(encoding))
    except UnicodeEncodeError:
        return False
