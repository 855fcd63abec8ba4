"""What the commands share: exit codes, JSON on standard output, files that appear whole."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import SCORE_MARKER, ConditionFormat

EXIT_FAILED, EXIT_INVALID, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 69, 130

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def console(*, stderr: bool = False) -> Console:
    """A console for texts and tables. Text wraps on a terminal only, so that a name in a pipe or a log stays whole."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    # rich takes a dumb terminal to be 80 columns wide, whatever its width.
    width = shutil.get_terminal_size().columns if os.environ.get("TERM") in ("dumb", "unknown") else None
    return Console(
        stderr=stderr,
        force_terminal=terminal,
        width=width,
        soft_wrap=not terminal,
        markup=False,
        highlight=False,
        emoji=False,
    )


def note(words: str) -> None:
    """Inform a person, never the pipe, that what was looked for is not there, and how it comes to be."""
    print(words, file=sys.stderr)


def condition_label(score: float | str, form: ConditionFormat | None = None) -> str:
    """A requested score, or several attributes: `score 5.00`, `helpfulness:4`. With the policy's `form`, how its prompt
    has it: `<rm_score> 5.00`, `5.00, as "wonderful"`, `5.00, as <|rm_score_6|> ("wonderful")`."""
    if isinstance(score, str):
        return score
    if form is None:
        return f"score {score:.2f}"
    text = form.text(form.resolve(Condition.of({SCORE: score})))
    if form.how.style == "digits":
        return f"{SCORE_MARKER} {text}"
    word = f'"{form.word(text)}"'
    return f"{score:.2f}, as {word}" if form.how.style == "words" else f"{score:.2f}, as {form.sign(text)} ({word})"


def tell(words: str, document: Any, *, json: bool) -> None:
    """What a command did: for a person, or with `json` as one document."""
    if json:
        print_json(document)
    else:
        print(words)


def print_json(document: Any) -> None:
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # half of a surrogate pair, or an integer beyond 64 bits
        text = json.dumps(document, indent=2)
    sys.stdout.write(text + "\n")
