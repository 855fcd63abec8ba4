"""`steerboard gate`: may the new model ship? For CI.

Exit codes: 0 pass, 1 fail, 2 invalid (not finished, too few answers, too many unparsed verdicts), 64 wrong usage (also
rules that cannot be used, and names that the server does not know), 69 no server answers.
"""

from __future__ import annotations

import json as strict_json
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, ServerUnreachable, path_of
from steerboard.cli.output import JsonOption, print_json, write_whole
from steerboard.cli.usage import ExactCommand, exit_code_of
from steerboard.evaluation.gate.junit import junit_xml
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.evaluation_report import GateVerdict

commands = typer.Typer()

EXITS = {"pass": 0, "fail": 1, "invalid": 2}
_STYLES = {"pass": "green", "fail": "red", "invalid": "yellow"}
_QUOTED = 'In YAML, write operators and dates in quotation marks: op: ">".'
# A first report over many verdicts takes seconds, and others may come first.
_TIMEOUT = 600.0


@commands.command("gate", cls=ExactCommand)
def gate(
    evaluation: Annotated[str, typer.Argument(help="Name or id.")],
    rules: Annotated[Path, typer.Option(help="A YAML or JSON file with `rules`, or a list of them; see docs/ci.md.")],
    junit: Annotated[Path | None, typer.Option(help="Also write the verdict as JUnit XML.")] = None,
    json: JsonOption = False,
) -> None:
    """Hold an evaluation against rules. Exits 0 pass, 1 fail, 2 invalid, 64 wrong usage, 69 no server answers."""
    try:
        body = _read(rules)
        if junit is not None and not junit.absolute().parent.is_dir():
            raise BadInput(f"there is no folder {junit.absolute().parent} for the JUnit file", code="cannot_write")
        client = Client(timeout=_TIMEOUT)
        found = client.post(path_of("evaluations", evaluation, "gate"), body)
        verdict = _verdict(client, found)
        if junit is not None:
            write_whole(junit, junit_xml(verdict).encode())
    except SteerboardError as error:
        raise typer.Exit(exit_code_of(error)) from None
    if json:
        print_json(found)
    else:
        _print(verdict)
    raise typer.Exit(EXITS[verdict.verdict])


def _verdict(client: Client, found: Any) -> GateVerdict:
    """Raises `ServerUnreachable` for an answer that is no verdict."""
    try:
        return GateVerdict.model_validate(found)
    except ValidationError as error:
        raise ServerUnreachable(
            f"what answers at {client.url} gave no verdict", hint="Is it a Steerboard of another version?"
        ) from error


def _read(path: Path) -> Any:
    """Rules as the API takes them. Raises `BadInput` for a file that cannot be read."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", code="no_such_file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} is neither YAML nor JSON: {error}", hint=_QUOTED) from None
    if isinstance(document, list):
        document = {"rules": document}
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise BadInput(f"{path} has no list of rules", hint="docs/ci.md has an example.")
    try:
        strict_json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        # YAML also has dates, infinities and values that hold themselves.
        raise BadInput(f"{path} has a value that cannot be sent as JSON: {error}", hint=_QUOTED) from None
    return document


def _print(verdict: GateVerdict) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for rule in verdict.rules:
        console.print(Text(f"{rule.outcome:<8}", style=_STYLES[rule.outcome]), Text(f"{rule.text}: {rule.why}"))
    console.print(Text(f"{verdict.evaluation}: {verdict.verdict}", style=f"bold {_STYLES[verdict.verdict]}"))
