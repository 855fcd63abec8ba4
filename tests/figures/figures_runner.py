"""`steerboard figures` for tests: the document it prints, and files to read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from typer.testing import CliRunner

from steerboard.cli.evaluation.figures import commands
from steerboard.cli.output.figures_table import print_figures


def run(*arguments: object) -> tuple[int, Any]:
    """(exit code, document). Raises what the command raises."""
    ran = CliRunner().invoke(commands, [str(argument) for argument in arguments], catch_exceptions=False)
    assert ran.exit_code in (0, 1), ran.output
    return ran.exit_code, json.loads(ran.stdout)


def figures(*arguments: object) -> Any:
    """A document in which everything is valid."""
    code, computed = run(*arguments)
    assert (code, computed["valid"], computed["reasons"]) == (0, True, [])
    return computed


def invalid(*arguments: object) -> Any:
    """A document in which something is invalid, which the exit code and the reasons show."""
    code, computed = run(*arguments)
    assert (code, computed["valid"]) == (1, False)
    assert computed["reasons"]
    return computed


def printed(computed: Any, width: int = 200) -> str:
    """What a terminal shows of a document."""
    text = io.StringIO()
    print_figures(computed, Console(file=text, width=width))
    return text.getvalue()


def write(path: Path, *rows: Any) -> Path:
    """Rows as JSON lines; texts as they are."""
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def single(question: int, score: float | None, *, model: str = "m", **more: Any) -> dict[str, Any]:
    row = {"question_id": question, "model": model, "judge": ["gpt-4", "single-v1"], "turn": 1, "score": score}
    return {**row, **more}


def pair(question: int, first: str, second: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of one order where `second` is None."""
    names = {"question_id": question, "model_1": "a", "model_2": "b", "turn": 1, "judge": ["gpt-4", "pair-v2"]}
    return {**names, "g1_winner": first, **({} if second is None else {"g2_winner": second}), **more}


def annotation(number: int, preference: Any, **more: object) -> dict[str, Any]:
    base = {"generator_1": "base", "output_1": f"{number} b", "generator_2": "mine", "output_2": "m" * (number + 1)}
    return {"instruction": f"Question {number}", **base, "preference": preference, **more}
