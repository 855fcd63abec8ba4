"""`steerboard evaluations`: create, list, show, judge, wait, report; files in and out are in `evaluation_files`."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import yaml
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation import campaigns, items, judges, report_links
from steerboard.cli.evaluation import files as evaluation_files
from steerboard.cli.evaluation import pairs as evaluation_pairs
from steerboard.cli.files import write_whole
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json, tell
from steerboard.cli.output.evaluation_report import print_evaluation_report
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard.cli.settings import config_of
from steerboard.cli.usage import ExactGroup
from steerboard_contracts.models import POLICIES
from steerboard_contracts.report.evaluation import EvaluationReport

app = typer.Typer(
    cls=ExactGroup,
    no_args_is_help=True,
    help="Compare answers of models to the same prompts, judged by people, judges and reward models.",
)
app.add_typer(evaluation_files.app)
app.add_typer(evaluation_pairs.app)
app.add_typer(campaigns.app)
app.add_typer(judges.app)
app.add_typer(report_links.app)
app.add_typer(items.app)

Name = evaluation_files.Name
Out = dict[str, Any]

POLL_SECONDS = 2.0
_WORK = {"entrants": "the answers of {}", "reward_assessments": "the rewards by {}", "judges": "the verdicts of {}"}
_TEXTS = ("name", "model", "endpoint", "family")


_COLUMNS = (
    Column("evaluation"),
    Column("state"),
    Column("prompts", right=True, drop=4),
    Column("judges", right=True, drop=6),
    Column("campaigns", right=True, drop=7),
    Column("created", moment, drop=3),
    Column("id", drop=2, id=True),
    Column("entrants", drop=5, words=True),
)


@app.command("list")
def list_evaluations(
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50, json: JsonOption = False
) -> None:
    """List evaluations, newest first."""
    evaluations = list(Client().pages("evaluations", limit=limit))
    if json:
        print_json(evaluations)
        return
    if not evaluations:
        note("No evaluations yet. Create one: steerboard evaluations create NAME --dataset DATASET --entrant MODEL")
        return
    keys = ("name", "state", "prompts", "judges", "campaigns", "created_at", "id", "entrants")
    print_table(console(), _COLUMNS, [tuple(evaluation[key] for key in keys) for evaluation in evaluations])


@app.command()
def show(evaluation: Name, json: JsonOption = False) -> None:
    """Show an evaluation: its entrants, reward models, judges, campaigns and unfinished work."""
    details: Out = Client().get(path_of("evaluations", evaluation))
    if json:
        print_json(details)
        return
    out = console()
    out.print(Text.assemble((details["name"], "bold"), f": {details['prompts']} prompts, {details['state']}"))
    for entrant in details["entrants"]:
        missing = f", {entrant['missing']} missing" if entrant["missing"] else ""
        best = entrant["decoding"].get("best_of")
        chosen = f", best of {best['n']} by {best['reward']}" if best else ""
        out.print(plain(f"  entrant {entrant['name']}: {entrant['responses']} answers{chosen}{missing}"))
    for kind, key in (("reward model", "reward_assessments"), ("campaign", "campaigns")):
        for part in details[key]:
            out.print(plain(f"  {kind} {part['name']}: {part['state']}"))
    for judge in details["judges"]:
        out.print(plain(f"  judge {judge['name']}: {_said_by(judge)}"))
    for reason in details["unfinished"]:
        out.print(plain(f"  not finished: {reason}"))


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the evaluation.")],
    prompt_set: Annotated[str | None, typer.Option(help="Prompt set to use.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Dataset whose prompts to use instead.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Rows of the dataset: held_out (the default), train or all.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many rows of the dataset.")] = None,
    entrant: Annotated[
        list[str] | None,
        typer.Option(
            help="A model, or fields such as model=demo-1.dt,score=5.0,name=dt, or a JSON object; may be repeated."
        ),
    ] = None,
    pipeline: Annotated[str | None, typer.Option(help="Pipeline whose models answer too, all that can.")] = None,
    reward: Annotated[list[str] | None, typer.Option(help="A reward model; may be repeated.")] = None,
    kl_to: Annotated[
        str | None,
        typer.Option(help="Reference model for the perplexity of all answers and the KL of sampled ones."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the answers and rewards are complete.")] = False,
    json: JsonOption = False,
) -> None:
    """Create an evaluation from prompts and entrants; generation starts immediately."""
    if (prompt_set is None) == (dataset is None):
        raise typer.BadParameter("give either --prompt-set or --dataset")
    prompts: Out = {"set": prompt_set} if prompt_set else {"dataset": dataset}
    prompts |= {key: value for key, value in (("split", split), ("limit", limit)) if value is not None}
    entrants = [_entrant(given) for given in entrant or []]
    client = Client()
    if pipeline is not None:
        models = client.get(path_of("pipelines", pipeline, "models"))
        entrants += [{"model": model["name"]} for model in models if model["role"] in POLICIES]
    body = {"name": name, "prompts": prompts, "entrants": entrants, "rewards": reward or []}
    made: Out = client.post("evaluations", body if kl_to is None else {**body, "kl_to": kl_to})
    if wait:
        _wait(client, made["id"])
        made = client.get(path_of("evaluations", made["id"]))
    if json:
        print_json(made)
    else:
        print(f"{made['name']}: {made['prompts']} prompts, {made['state']}")


@app.command()
def judge(
    evaluation: Name,
    endpoint: Annotated[str | None, typer.Option(help="Endpoint of the project whose model judges.")] = None,
    style: Annotated[
        str | None, typer.Option(help="multi, single, rubric, pairwise, alpaca_eval or arena_hard.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Preference model of the project, instead of an endpoint; its style is preference."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the judge.")] = None,
    family: Annotated[str | None, typer.Option(help="Model family, for the check of self-preference.")] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(help="A setting, such as baseline=sft, entrants=\\[sft,dt] or max_tokens=512; may be repeated."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report how many requests it would take.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until everything is judged.")] = False,
    json: JsonOption = False,
) -> None:
    """Let an LLM compare or rate the answers, or a preference model compare them. Waits for missing answers."""
    if style is None and model is None:
        raise typer.BadParameter("an endpoint needs a judging style", param_hint="--style")
    settings = config_of(set or [], {})
    judging = {"endpoint": endpoint, "model": model, "style": style or "preference"}
    body = {"name": name, **judging, "family": family, "settings": settings}
    client, path = Client(), path_of("evaluations", evaluation, "judges")
    made: Out = client.post(path, body, params={"dry_run": dry_run})
    if wait and not dry_run:
        _wait(client, evaluation, only=made["id"])
        made = client.get(f"{path}/{made['id']}")
    if json:
        print_json(made)
    elif dry_run:
        most = "" if made["most_cost"] is None else f"; the others cost at most {made['most_cost']:,.2f}"
        known = f"{made['cached']:,} of which are already answered or equal to others"
        print(f"{made['requests']:,} requests, {known}{most}")
    else:
        print(f"{made['name']}: {_said_by(made)}")


@app.command("delete-judge")
def delete_judge(
    evaluation: Name,
    judge: Annotated[str, typer.Argument(help="Name, as printed by `show`, or id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a judge with its verdicts. Paid answers stay cached: the same judge again costs nothing."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete judge {judge} of {evaluation} with its verdicts?", abort=True)
    Client().delete(path_of("evaluations", evaluation, "judges", judge))
    tell(f"Deleted judge {judge} of {evaluation}", {"deleted": judge}, json=json)


@app.command()
def wait(evaluation: Name, json: JsonOption = False) -> None:
    """Wait until all work has ended. Exits with 1 if something failed."""
    client = Client()
    _wait(client, evaluation)
    if json:
        print_json(client.get(path_of("evaluations", evaluation)))


@app.command()
def report(
    evaluation: Name,
    baseline: Annotated[str | None, typer.Option(help="The entrant that the others are compared with.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the report to this file: .html for a single page, .pdf, otherwise JSON.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the report: the winner, the margin, its source, reservations, and every method's figures by source."""
    client = Client(timeout=600.0)
    path = path_of("evaluations", evaluation, "report")
    ending = output.suffix.lower() if output is not None else ""
    if output is not None and ending in (".html", ".pdf"):
        client.download(f"{path}{ending}", output, **({"baseline": baseline} if baseline else {}))
        if not json:
            return
    document: Out = client.get(path, baseline=baseline)
    if output is not None and ending not in (".html", ".pdf"):
        write_whole(output, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
    elif output is None:
        print_evaluation_report(console(), EvaluationReport.model_validate(document))


def _said_by(judge: Out) -> str:
    """What a judge's verdicts are, and what they cost."""
    words = [judge["state"], f"{judge['verdicts']:,} verdicts"]
    words += [f"{judge[key]:,} {key}" for key in ("unparsed", "refused", "errors") if judge[key]]
    if judge["requests"] or judge["cached"]:
        words.append(f"{judge['requests']:,} requests and {judge['cached']:,} cached answers")
    if judge["prompt_tokens"] is not None:
        words.append(f"{judge['prompt_tokens']:,} + {judge['completion_tokens']:,} tokens")
    if judge["cost"] is not None:
        words.append(f"cost {'at most ' if judge['uncertain_cost'] else ''}{judge['cost']:,.4g}")
    if judge["calibration_cost"]:
        words.append(f"calibrations {judge['calibration_cost']:,.4g}")
    words += [f"{count:,} times {code}" for code, count in judge["failures"].items()]
    words += [] if judge["valid"] else [f"not valid: {judge['invalid_because']}"]
    return ", ".join(words)


def _entrant(given: str) -> Out:
    """`demo-1.dt`, or `model=demo-1.dt,score=5.0,samples=4`, or the fields as a JSON object."""
    if given.startswith("{"):
        try:
            return dict(yaml.safe_load(given))
        except (yaml.YAMLError, TypeError, ValueError):
            raise typer.BadParameter(f"{given!r} is not a JSON object", param_hint="--entrant") from None
    if "=" not in given:
        return {"model": given}
    # A condition has commas too: score=helpfulness:4,verbosity:2.
    return dict(_field(part) for part in re.split(r",(?=[^,=]*=)", given))


def _field(given: str) -> tuple[str, Any]:
    """(key, value) of `key=value`. Names stay texts, other values are read as YAML reads them."""
    key, _, text = (part.strip() for part in given.partition("="))
    if not key or not text:
        raise typer.BadParameter(f"{given!r} is not of the form key=value", param_hint="--entrant")
    if key in _TEXTS:
        return key, text
    try:
        return key, yaml.safe_load(text)
    except yaml.YAMLError:
        raise typer.BadParameter(f"the value of {given!r} cannot be read", param_hint="--entrant") from None


def _wait(client: Client, evaluation: str, only: str | None = None) -> None:
    """Campaigns are left to people: waited for are runs, and the search for the prompts in training data; or the run of
    `only`, the id of a part."""
    while True:
        state: Out = client.get(path_of("evaluations", evaluation))
        parts = [(what, part) for key, what in _WORK.items() for part in state[key] if part["run"]]
        runs = [(what.format(part["name"]), part["run"]) for what, part in parts if only in (None, part["id"])]
        at_work = any(run["state"] in ("pending", "queued", "running") for _, run in runs)
        if not at_work and (only is not None or not state["contamination"]["waiting"]):
            break
        time.sleep(POLL_SECONDS)
    broken = [(what, run) for what, run in runs if run["state"] != "succeeded"]
    for what, run in broken:
        print(f"{state['name']}: {what} {run['state']}: {run['reason']}", file=sys.stderr)
    if broken:
        raise typer.Exit(EXIT_FAILED)
