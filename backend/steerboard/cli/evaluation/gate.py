"""`steerboard gate`: may the new model ship? For CI.

Exit codes: 0 pass, 1 fail, 2 invalid (not finished, too few answers, too many unparsed verdicts), 64 wrong usage (also
rules that cannot be used, and names that the server does not know), 69 no server answers.
"""

from __future__ import annotations

import json as strict_json
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from rich.text import Text

from steerboard.cli.client import ApiError, Client, ServerUnreachable, path_of, print_error
from steerboard.cli.evaluation.documents import read_document
from steerboard.cli.files import write_whole
from steerboard.cli.output.console import JsonOption, console, print_json
from steerboard.cli.output.listing import plain
from steerboard.cli.usage import ExactCommand, exit_code_of
from steerboard.evaluation.gate.junit import junit_xml
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.report.gate import GateVerdict

commands = typer.Typer()

EXITS = {"pass": 0, "fail": 1, "invalid": 2}
_STYLES = {"pass": "green", "fail": "red", "invalid": "yellow"}
_QUOTED = 'In YAML, write operators and dates in quotation marks: op: ">".'
# A first report over many verdicts takes seconds, and others may come first.
_TIMEOUT = 600.0
_POLL_SECONDS = 1.0


JunitOption = Annotated[Path | None, typer.Option(help="Also write the verdict as JUnit XML.")]


@commands.command("gate", cls=ExactCommand)
def gate(
    evaluation: Annotated[
        str, typer.Argument(help="Name or id of an evaluation, or of a pipeline that ends with one.")
    ],
    rules: Annotated[Path, typer.Option(help="A YAML or JSON file with `rules`, or a list of them; see docs/ci.md.")],
    junit: JunitOption = None,
    json: JsonOption = False,
) -> None:
    """Check an evaluation against rules. Exits 0 pass, 1 fail, 2 invalid, 64 wrong usage, 69 no server answers."""
    try:
        body = read_rules(rules, junit)
        client = Client(timeout=_TIMEOUT)
        try:
            verdict = client.post(path_of("evaluations", evaluation, "gate"), body)
        except ApiError as error:
            if error.code != "unknown_evaluation":
                raise
            verdict = _of_pipeline(client, evaluation, body, unknown=error)
        end_with(client, verdict, junit, json=json)
    except SteerboardError as error:
        raise typer.Exit(exit_code_of(error)) from None


def hold(client: Client, evaluation: str, body: Any, junit: Path | None, *, json: bool) -> NoReturn:
    """Wait until nothing of the evaluation is under way, check it against the rules and exit with the verdict. Raises
    what the client raises."""
    path = path_of("evaluations", evaluation)
    while client.get(path)["contamination"]["waiting"]:
        time.sleep(_POLL_SECONDS)
    end_with(client, client.post(f"{path}/gate", body, timeout=_TIMEOUT), junit, json=json)


def read_rules(path: Path, junit: Path | None) -> Any:
    """Rules as the API takes them. Raises `BadInput` for files that cannot be read, or written."""
    if junit is not None and not junit.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {junit.absolute().parent} for the JUnit file", code="cannot_write")
    return _read(path)


def end_with(client: Client, answer: Any, junit: Path | None, *, json: bool) -> NoReturn:
    """Print a verdict and exit with its code. Raises `ServerUnreachable` for what is none."""
    verdict = _verdict(client, answer)
    if junit is not None:
        write_whole(junit, junit_xml(verdict).encode())
    if json:
        print_json(answer)
    else:
        _print(verdict)
    raise typer.Exit(EXITS[verdict.verdict])


def _of_pipeline(client: Client, pipeline: str, body: Any, unknown: ApiError) -> Any:
    """Raises `unknown` where there is no such pipeline either. One that has not come so far is not a usage error."""
    try:
        return client.post(path_of("pipelines", pipeline, "gate"), body)
    except ApiError as error:
        if error.code == "no_evaluation_yet":
            print_error(error)
            raise typer.Exit(EXITS["invalid"]) from None
        raise unknown if error.code == "not_found" else error from None


def _verdict(client: Client, answer: Any) -> GateVerdict:
    """Raises `ServerUnreachable` for an answer that is not a verdict."""
    try:
        return GateVerdict.model_validate(answer)
    except ValidationError as error:
        raise ServerUnreachable(
            f"what answers at {client.url} returned no verdict", hint="Is it a Steerboard of another version?"
        ) from error


def _read(path: Path) -> Any:
    """Rules as the API takes them. Raises `BadInput` for a file that cannot be read."""
    document = read_document(path, _QUOTED)
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
    out = console()
    for rule in verdict.rules:
        words = plain(f"{rule.text}: {rule.why}")
        out.print(Text.assemble((f"{rule.outcome:<8} ", _STYLES[rule.outcome]), words), soft_wrap=True)
    out.print(Text(f"{verdict.evaluation}: {verdict.verdict}", style=f"bold {_STYLES[verdict.verdict]}"))
