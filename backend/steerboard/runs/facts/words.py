"""What a word of a text search is, in SQL (the index) and in Python (queries).

Words are runs of letters and digits, lower-cased by the database's `simple` text search configuration. Its parser would
take `demo-1.sft` for one token; so the characters that glue words become blanks.
"""

from __future__ import annotations

import re

from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.orm import Session

from steerboard.platform.few_ids import among
from steerboard.runs.facts.tables import RunWords
from steerboard.runs.tables import Run

GLUE = "./@-_<>&~+:,;=|"
_BLANKS = str.maketrans(GLUE, " " * len(GLUE))
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a query, in its order."""
    return _WORD.findall(text.translate(_BLANKS).lower())


def runs_with(session: Session, text: str) -> ColumnElement[bool]:
    """A condition on runs: every word of the text begins a word of theirs. A text without a word finds all."""
    words = words_of(text)
    if not words:
        return true()
    query = " & ".join(f"'{word}':*" for word in words)
    matching = RunWords.words.op("@@")(func.to_tsquery("simple", query))
    return among(session, Run.id, select(RunWords.run_id).where(matching))
