"""The shell blocks of README.md and docs/*.md, and how a test names the ones that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"\s*```\s*(\S*)\s*$")
_SHELLS = ("", "sh", "bash", "console")
# An indented block may be a piece of YAML or an address of the API; this makes it one for the shell.
_COMMAND = re.compile(r"^\s*(?:steerboard|make|pip|docker|kubectl|helm|python3? -m) ", re.MULTILINE)
_INDENTED = re.compile(r"( {4}|\t)\s*\S")


@dataclass(frozen=True)
class Block:
    """`line` is that of its first command, counted from 1; `kind` the language of its fence, or `indented`."""

    page: str
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Named:
    """The blocks of a page that begin with `begins`, of one kind where it is given."""

    page: str
    begins: str = ""
    kind: str | None = None

    def means(self, block: Block) -> bool:
        return block.page == self.page and block.text.startswith(self.begins) and self.kind in (None, block.kind)

    @property
    def text(self) -> str:
        """Raises `LookupError` unless there is exactly one."""
        texts = [block.text for block in shell_blocks() if self.means(block)]
        if len(texts) != 1:
            raise LookupError(f"{self.page} has {len(texts)} shell blocks that begin with {self.begins!r}")
        return texts[0]


def runs(*named: Named) -> pytest.MarkDecorator:
    """Marks a test that runs these blocks: it gets their texts as `blocks`, and is known to run them."""
    return pytest.mark.parametrize("blocks", [named], ids=[named[0].page])


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        begin = at = at + 1 if fence else at
        if fence:
            while not _FENCE.match(lines[at]):
                at += 1
        elif _INDENTED.match(lines[at]) and not (at and lines[at - 1].strip()):
            while at < len(lines) and _INDENTED.match(lines[at]):
                at += 1
        text = "".join(line.removeprefix("    ") + "\n" if not fence else line + "\n" for line in lines[begin:at])
        if fence.group(1) in _SHELLS if fence else _COMMAND.search(text):
            yield Block(page.name, begin + 1, fence.group(1) if fence else "indented", text)
        at += 1


def shell_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page)]
