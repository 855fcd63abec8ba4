"""Texts as words, the same for all ways of writing them."""

from __future__ import annotations

import re
import unicodedata

# Scripts that put no spaces between words count by the character.
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
# Punctuation and control characters of ASCII become spaces: some ten times as fast as the expression.
_ASCII = str.maketrans({chr(c): " " for c in range(128) if not chr(c).isalnum()})


def words(text: str) -> list[str]:
    """The words of a text after NFKC and case folding, without punctuation."""
    if text.isascii():
        return text.lower().translate(_ASCII).split()
    # Folding may leave forms that NFKC would compose again, so once more.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _WORD.findall(folded)


def normalise(text: str) -> str:
    """The words of a text with one space between; a text of nothing but punctuation stays as it is, stripped."""
    return " ".join(words(text)) or text.strip()
