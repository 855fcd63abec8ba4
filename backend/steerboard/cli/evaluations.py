"""`steerboard evaluations`: create, list, show, wait, report, and files of other projects in and out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import orjson
import typer
import yaml
from rich.console import Console
from rich.table import Table

from steerboard.cli.client import Client
from steerboard.cli.evaluation_report import print_evaluation_report
from steerboard.cli.output import EXIT_FAILED, JsonOption, print_json, write_whole
from steerboard.cli.usage import ExactGroup
from steerboard_contracts.errors import BadInput
from steerboard_contracts.evaluation_report import EvaluationReport

app = typer.Typer(
    cls=ExactGroup, no_args_is_help=True, help="Prompts x entrants: answers, and what people and judges say of them."
)

Name = Annotated[str, typer.Argument(help="Name or id of the evaluation.")]
Out = dict[str, Any]

POLL_SECONDS = 2.0
_PATIENT = httpx.Timeout(None, connect=5.0)


@app.command("list")
def list_evaluations(
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50, json: JsonOption = False
) -> None:
    """List evaluations, newest first."""
    found = list(Client().pages("evaluations", limit=limit))
    if json:
        print_json(found)
        return
    table = Table("Name", "State", "Prompts", "Entrants", "Judges", "Campaigns", "Created", box=None)
    for one in found:
        counts = (str(one["prompts"]), ", ".join(one["entrants"]), str(one["judges"]), str(one["campaigns"]))
        table.add_row(one["name"], one["state"], *counts, one["created_at"][:16].replace("T", " "))
    Console().print(table)


@app.command()
def show(evaluation: Name, json: JsonOption = False) -> None:
    """Its entrants, reward models, judges and campaigns, and what is left to do."""
    found: Out = Client().get(_path(evaluation))
    if json:
        print_json(found)
        return
    console = Console(highlight=False)
    console.print(f"[bold]{found['name']}[/]: {found['prompts']} prompts, {found['state']}")
    for entrant in found["entrants"]:
        missing = f", {entrant['missing']} missing" if entrant["missing"] else ""
        console.print(f"  entrant {entrant['name']}: {entrant['responses']} answers{missing}", markup=False)
    for kind, key in (("reward model", "reward_assessments"), ("judge", "judges"), ("campaign", "campaigns")):
        for one in found[key]:
            console.print(f"  {kind} {one['name']}: {one['state']}", markup=False)
    for reason in found["unfinished"]:
        console.print(f"  not finished: {reason}", markup=False)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the evaluation.")],
    prompt_set: Annotated[str | None, typer.Option(help="Prompts of a prompt set.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Or prompts of a dataset.")] = None,
    split: Annotated[str | None, typer.Option(help="Of the dataset: all, train or held_out.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many of the dataset.")] = None,
    entrant: Annotated[
        list[str] | None,
        typer.Option(help="A model, or fields of one: model=demo-1.dt,score=5.0,name=dt; again for more."),
    ] = None,
    reward: Annotated[list[str] | None, typer.Option(help="A reward model; again for more.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until the answers and rewards are there.")] = False,
    json: JsonOption = False,
) -> None:
    """Choose prompts and entrants; the answers are begun at once."""
    if (prompt_set is None) == (dataset is None):
        raise typer.BadParameter("give either --prompt-set or --dataset")
    prompts: Out = {"set": prompt_set} if prompt_set else {"dataset": dataset}
    prompts |= {key: value for key, value in (("split", split), ("limit", limit)) if value is not None}
    entrants = [_entrant(given) for given in entrant or []]
    client = Client()
    made: Out = client.post(
        "evaluations", {"name": name, "prompts": prompts, "entrants": entrants, "rewards": reward or []}
    )
    if wait:
        _wait(client, made["id"])
        made = client.get(_path(made["id"]))
    if json:
        print_json(made)
    else:
        print(f"{made['name']}: {made['prompts']} prompts, {made['state']}")


@app.command()
def wait(evaluation: Name) -> None:
    """Until nothing is under way. Exits 1 where something failed."""
    _wait(Client(), evaluation)


@app.command()
def report(
    evaluation: Name,
    baseline: Annotated[str | None, typer.Option(help="The entrant that the others are held against.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the whole report as JSON to this file.")] = None,
    json: JsonOption = False,
) -> None:
    """The methods by every source, the winners, agreement and warnings."""
    document: Out = Client(timeout=600.0).get(f"{_path(evaluation)}/report", baseline=baseline)
    if output is not None:
        write_whole(output, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
    elif output is None:
        print_evaluation_report(Console(highlight=False), EvaluationReport.model_validate(document))


@app.command("import-answers")
def import_answers(
    evaluation: Name,
    file: Annotated[Path, typer.Argument(help="FastChat, AlpacaEval or Arena-Hard answers; also gzipped.")],
    name: Annotated[str | None, typer.Option(help="Name of the entrant; the file's by default.")] = None,
    format: Annotated[str, typer.Option(help="auto, fastchat, alpaca_eval or arena_hard.")] = "auto",
    family: Annotated[str | None, typer.Option(help="Family of the model, for judges' self-preference.")] = None,
    json: JsonOption = False,
) -> None:
    """Answers of models that are not ours become entrants."""
    form = {"format": format, "name": name, "family": family}
    found = _upload(f"{_path(evaluation)}/answers", file, form)
    if json:
        print_json(found)
        return
    names = ", ".join(one["name"] for one in found["entrants"])
    print(f"{names}: {found['matched']} answers, {len(found['unmatched'])} of no prompt, {found['duplicates']} twice")


@app.command("import-judgments")
def import_judgments(
    evaluation: Name,
    file: Annotated[Path, typer.Argument(help="Judgments of FastChat, AlpacaEval, Arena-Hard or Vicuna.")],
    name: Annotated[str | None, typer.Option(help="Name of the judge.")] = None,
    format: Annotated[str, typer.Option(help="auto, or the format's name.")] = "auto",
    model: Annotated[str | None, typer.Option(help="The judge's model.")] = None,
    json: JsonOption = False,
) -> None:
    """Judgments made elsewhere become a judge, and enter every statistic."""
    found = _upload(f"{_path(evaluation)}/judgments", file, {"format": format, "name": name, "model": model})
    if json:
        print_json(found)
        return
    print(
        f"{found['judge']['name']}: {found['rows']} rows, {found['ok']} ok, {found['unparsed']} unparsed, "
        f"{found['refused']} refused, {found['errors']} errors, {found['duplicates']} superseded"
    )


@app.command()
def export(
    evaluation: Name,
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    format: Annotated[str, typer.Option(help="fastchat, alpaca_eval or arena_hard; of a judge also its others.")],
    entrant: Annotated[str | None, typer.Option(help="Answers of this entrant.")] = None,
    judge: Annotated[str | None, typer.Option(help="Judgments of this judge.")] = None,
) -> None:
    """Answers of an entrant, or judgments of a judge, in another project's file format."""
    if (entrant is None) == (judge is None):
        raise typer.BadParameter("give either --entrant or --judge")
    part = "answers" if judge is None else f"judges/{quote(judge, safe='')}/judgments"
    params = {"format": format} | ({"entrant": entrant} if entrant else {})
    size = Client().download(f"{_path(evaluation)}/{part}", target, **params)
    print(f"Wrote {target} ({size:,} bytes)")


def _path(evaluation: str) -> str:
    return f"evaluations/{quote(evaluation, safe='')}"


def _entrant(given: str) -> Out:
    """`demo-1.dt`, or `model=demo-1.dt,score=5.0,samples=4`. Numbers are read as YAML reads them."""
    if "=" not in given:
        return {"model": given}
    parts = [part.partition("=") for part in given.split(",")]
    if any(not key or not value for key, _, value in parts):
        raise typer.BadParameter(f"--entrant {given!r} is not of the form key=value,key=value")
    names = ("name", "model", "endpoint", "family")
    return {key.strip(): value if key.strip() in names else yaml.safe_load(value) for key, _, value in parts}


def _upload(path: str, file: Path, form: Out) -> Out:
    fields = {key: value for key, value in form.items() if value is not None}
    try:
        with file.open("rb") as content:
            found: Out = Client().post(path, files={"file": (file.name, content)}, data=fields, timeout=_PATIENT)
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", code="no_such_file") from None
    return found


def _wait(client: Client, evaluation: str) -> None:
    """Campaigns are left to people: only runs are waited for."""
    while True:
        found: Out = client.get(_path(evaluation))
        runs = [one["run"] for key in ("entrants", "reward_assessments", "judges") for one in found[key] if one["run"]]
        if not any(run["state"] in ("pending", "queued", "running") for run in runs):
            break
        time.sleep(POLL_SECONDS)
    broken = [run for run in runs if run["state"] != "succeeded"]
    for run in broken:
        print(f"{found['name']}: a run {run['state']}: {run['reason']}", file=sys.stderr)
    if broken:
        raise typer.Exit(EXIT_FAILED)
