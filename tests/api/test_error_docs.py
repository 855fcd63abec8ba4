"""docs/errors.md lists every error code of the source once, and no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# These take their code by position.
_BY_POSITION = {"Failure": 0, "Problem": 0, "move": 4}
_ROW = re.compile(r"^\| `([^`]+)` \|[^|]+\|[^|]+\|$", re.MULTILINE)


def _literals(value: ast.expr | None) -> Iterator[str]:
    """The codes that an expression may yield; `http_{status}` is `http_*`."""
    match value:
        case ast.Constant(value=str(code)):
            yield code
        case ast.IfExp(body=body, orelse=otherwise):
            yield from _literals(body)
            yield from _literals(otherwise)
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts)


def _codes_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id="code")], value=value):
            yield from _literals(value)
        case ast.AnnAssign(target=ast.Name(id="code"), value=value):
            yield from _literals(value)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "code":
                    yield from _literals(keyword.value)
            if name in _BY_POSITION and len(args) > _BY_POSITION[name]:
                yield from _literals(args[_BY_POSITION[name]])


def codes_of(source: str) -> set[str]:
    return {code for node in ast.walk(ast.parse(source)) for code in _codes_of(node)}


def documented() -> Counter[str]:
    return Counter(_ROW.findall((ROOT / "docs" / "errors.md").read_text()))


def test_every_code_of_the_source_is_documented_and_no_other() -> None:
    files = [path for folder in ("backend", "workers") for path in (ROOT / folder).rglob("*.py")]
    in_source = set[str]().union(*(codes_of(path.read_text()) for path in files))
    listed = set(documented())
    assert sorted(in_source - listed) == [], "codes that docs/errors.md does not list"
    assert sorted(listed - in_source) == [], "codes of docs/errors.md that no longer exist"


def test_a_code_has_one_row() -> None:
    assert [code for code, rows in documented().items() if rows > 1] == []


def test_every_table_row_says_what_happened_and_what_to_do() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith(("| Code", "| ---"))]
    assert [row for row in rows if not _ROW.match(row)] == []


def test_codes_are_found_wherever_the_source_names_them() -> None:
    source = """
class Lost(Error):
    code = "by_class"
raise Error("x", code="by_keyword" if here else "by_other_keyword")
raise Error("x", code=f"http_{status}")
code = given.code if given else "by_variable"
Failure("by_failure", "x")
records.Problem("by_problem", "x")
move(session, run, "failed", "x", "by_move")
move(session, run, "failed", "x", failure.code)
"""
    assert codes_of(source) == {
        "by_class",
        "by_keyword",
        "by_other_keyword",
        "http_*",
        "by_variable",
        "by_failure",
        "by_problem",
        "by_move",
    }
