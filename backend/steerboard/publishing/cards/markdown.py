"""Cards as text: YAML metadata, headings, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

TAG = "steerboard"
"""By this tag a later push knows a repository as one of ours."""


def front_matter(fields: dict[str, Any]) -> str:
    """The front matter without what is not known."""
    known = {name: value for name, value in fields.items() if value not in (None, [], {})}
    return f"---\n{yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=1000)}---\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines)


def sections(parts: Iterable[tuple[str, str]]) -> str:
    """The parts that have a text, each below its heading."""
    return "\n".join(f"\n## {title}\n\n{text.strip()}\n" for title, text in parts if text.strip())


def code(text: str) -> str:
    """Inline; names of a project hold no backticks, but what a file claims may."""
    return f"`{text.replace('`', '')}`"


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(re.sub(r"\s+", " ", str(cell)).replace("|", "\\|") for cell in cells) + " |"
