"""Words that make our prose read as translated, each with what to write instead; `make lint` fails on them.

Of Python files it checks comments and strings (of tests only comments and docstrings), of all others the text: docs,
dashboard, recipes, Makefile. A line that quotes such a word on purpose ends with `prose: ok`. The words to use are in
docs/glossary.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ESCAPE = "prose: ok"
SUFFIXES = {".py", ".md", ".ts", ".tsx", ".css", ".html", ".yaml", ".yml", ".toml", ".sh", ".txt", ".ini"}
NAMES = {"Makefile", "Dockerfile"}
# Generated from the API, fixed by its publisher, or this list itself.
IGNORED = (
    "scripts/prose_check.py",
    "tests/platform/test_prose_check.py",
    "frontend/openapi.json",
    "frontend/src/api/schema.d.ts",
    "constraints.txt",
    "requirements-vllm-cpu.txt",
)

# (pattern, what to write instead). Case does not matter; patterns match within one line.
AVOID: tuple[tuple[str, str], ...] = (
    (r"\bwho(m)?ever\b", "anyone who, the person who, the caller"),
    (r"\bbeside\b", "next to, alongside, in addition to, with"),
    (r"\blies?\b(?! to\b)", "is, is stored"),
    (r"\b(stands?|stood)\b(?!-in\b| in for\b| out\b| for\b| alone\b| still\b)", "is, appears, is listed"),
    (r"\b(?<!people )(?<!person )(?<!user )(says|said|tells)\b", "shows, reports, names, describes, specifies"),
    (r"\btold\b(?! (apart|otherwise|else)\b)", "reported, sent, given, shown, known"),
    (r"\bsay so\b", "report it, show it"),
    (r"\btell (how|what|which|whether|where|that)\b", "show, describe"),
    (r"\bwhat waits\b", "queued, pending ..."),
    (r"\bby what\b", "because of what, by which"),
    (r"\bfor want of\b", "without, because there is no"),
    (r"\bso that (nobody|no one|nothing|none)\b", "so no ..."),
    (r"\bends? with (him|her|them)\b", "is revoked with their account"),
    (r"\bin the reverse one\b", "in reverse order"),
    (r"\b(goes|go|went) before\b", "precedes, comes first"),
    (r"\b(breaks?|broke|broken|breaking) off\b", "is interrupted, stops early"),
    (r"\b(has|have|had) not (the|an?|any|all|enough)\b", "does not have"),
    (r"\b(is|are) no \w+ but\b", "is not ... but"),
    (r"\bthat (is|are) none\b", "that is not one"),
    (r"\b(goes|go|went|going|gone) on\b", "continues, resumes, runs"),
    (r"(?-i:(?<!\")\b([Nn]o|[Ss]ome|[Ee]very|[Aa]ny)body\b)", "no one, someone, another user, the annotator"),
    (r"\b(that|which|what) (is|are) no (?!longer\b|more\b|one\b|better\b)", "that is not a ..., is not a valid ..."),
    (r"\bmend(s|ed|ing)?\b", "fix, repair"),
    (r"\banew\b", "again, a new ..."),
    (r"\b(came|comes|becomes?|became) of\b", "the result of, happens to"),
    (r", for (it|they|there|he|she|this|nobody|nothing)\b", ", because ..."),
    (r"\bbut for\b", "except for"),
    (r"\b(?-i:he|He|him|his|His|himself)\b", "they, the caller, the worker"),
    (r"\bspeaks? of\b", "covers, is about"),
    (r"\bone's own\b", "your own, its own"),
    (r"\bwhat is there\b", "what exists"),
    (r"\b(is|are|was|were) (not )?there already\b", "already exists"),
    (r"\bthere is nothing (but|else than)\b", "there is only"),
)
# Code within prose: names in backticks, values in the braces of a formatted string.
CODE = re.compile(r"`[^`]*`|\{[^{}]*\}")
# Names and classes in TypeScript and CSS, by what is next to them.
NAMES_IN_CODE = re.compile(
    r"className=\"[^\"]*\"|\bconst \[[^\]]*\]|\b(const|let|function|in) \w+"
    r"|[\w-]+(?=\??(:|=|\())|[\w-]+(?=[?)];?$)|\.+[\w-]+|^\s*\w+[,;]$"
)
# From Python 3.12 on, the texts of an f-string are tokens of their own, and from 3.14 those of a t-string.
TEXTS = {tokenize.STRING} | {
    getattr(tokenize, name) for name in ("FSTRING_MIDDLE", "TSTRING_MIDDLE") if hasattr(tokenize, name)
}
PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in AVOID)


def python_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings by line; of tests only comments and docstrings, because their other strings are data."""
    is_test = path.is_relative_to(ROOT / "tests")
    before = tokenize.NEWLINE
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            starts_statement = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            if token.type == tokenize.COMMENT or (token.type in TEXTS and (starts_statement or not is_test)):
                allowed = ESCAPE in token.line
                for offset, text in enumerate(token.string.split("\n")):
                    yield token.start[0] + offset, ESCAPE if allowed else text
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING):
                before = token.type


def prose(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        return python_prose(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    code = path.suffix in {".ts", ".tsx", ".css"}
    return enumerate((NAMES_IN_CODE.sub("", line) if code else line for line in lines), start=1)


def faults(path: Path, shown: str) -> list[str]:
    """One line for each fault: where, the words, and what to write instead."""
    return [
        f'{shown}:{number}: "{found.group()}": {instead}'
        for number, text in prose(path)
        if ESCAPE not in text
        for pattern, instead in PATTERNS
        for found in pattern.finditer(CODE.sub("``", text))
    ]


def files() -> list[str]:
    """Everything that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [
        name
        for name in listed.stdout.split("\n")
        if (Path(name).suffix in SUFFIXES or Path(name).name in NAMES)
        and name not in IGNORED
        and (ROOT / name).is_file()
    ]


def main(names: list[str]) -> int:
    found = [fault for name in names or files() for fault in faults(ROOT / name, name)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
