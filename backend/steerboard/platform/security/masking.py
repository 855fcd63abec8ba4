"""Keys of endpoints in what is written about failures."""

from __future__ import annotations

import re

_MASK = "***"


def masked(text: str, key: str | None) -> str:
    """`text` without `key`, where that is a word of its own: servers without authentication are given keys such as
    `test`, `none` or `x`, which are parts of words. Texts of models are never masked."""
    return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", _MASK, text) if key else text
