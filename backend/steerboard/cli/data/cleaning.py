"""`steerboard datasets clean`: what the rules would drop, and a new version without it."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, print_json
from steerboard.cli.output.listing import plain
from steerboard_contracts.tools import answer_text

app = typer.Typer()

Out = dict[str, Any]
# Cleaning a large dataset takes long; only silence on the line itself is an error.
_PATIENT = httpx.Timeout(None, connect=5.0)
_SWITCHES = {
    "empty_round": "empty-round",
    "wrong_roles": "wrong-roles",
    "identical_sides": "identical-sides",
    "evaluation_overlap": "evaluation-overlap",
    "contradiction": "contradiction",
    "duplicate": "duplicate",
    "near_duplicate": "near-duplicate",
}
_WIDTH = 100


@app.command()
def clean(
    dataset: Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help=f"Turn off a rule; may be repeated: {', '.join(_SWITCHES.values())}."),
    ] = None,
    min_margin: Annotated[float | None, typer.Option(help="Drop pairs with a smaller margin; off by default.")] = None,
    similarity: Annotated[
        float | None,
        typer.Option(min=0.5, max=1, help="Similarity from which texts are near duplicates; 0.8 by default."),
    ] = None,
    evaluation: Annotated[
        list[str] | None,
        typer.Option(help="Evaluation or prompt set whose prompts to look for (may be repeated); all by default."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new version; DATASET-clean-N by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and show examples.")] = False,
    examples: Annotated[int, typer.Option(min=0, max=20, help="Examples per rule in a dry run.")] = 2,
    json: JsonOption = False,
) -> None:
    """Drop pairs that teach nothing or the wrong thing. This makes a new version; the dataset itself is unchanged.

    Rules: turns without text, wrong roles, identical sides, small margins, prompts of evaluations, contradictions,
    duplicates and near duplicates. The new version records what was dropped and why.
    """
    body = _rules(keep or [], min_margin, similarity, evaluation)
    client, path = Client(), path_of("datasets", dataset, "cleaning")
    progress = console(stderr=True)
    with progress.status(f"Looking through {dataset}"):
        if dry_run:
            result: Out = client.post(f"{path}/preview", {**body, "examples": examples}, timeout=_PATIENT)
        else:
            result = client.post(path, {**body, "name": name}, timeout=_PATIENT)
    if json:
        print_json(result)
    elif dry_run:
        _print_preview(result, console())
    else:
        _print_made(result, console())


def _rules(keep: list[str], min_margin: float | None, similarity: float | None, evaluations: list[str] | None) -> Out:
    by_name = {option: field for field, option in _SWITCHES.items()}
    for rule in keep:
        if rule not in by_name:
            raise typer.BadParameter(f"{rule!r} is not a rule; they are {', '.join(by_name)}", param_hint="--keep")
    body: Out = {by_name[rule]: False for rule in keep}
    if min_margin is not None:
        body["min_margin"] = min_margin
    if similarity is not None:
        body["similarity"] = similarity
    if evaluations:
        body["evaluations"] = evaluations
    return body


def _print_preview(cleaning: Out, out: Console) -> None:
    out.print(f"{cleaning['rows']:,} pairs: {cleaning['kept']:,} kept, {cleaning['rows'] - cleaning['kept']:,} dropped")
    for rule in cleaning["rules"]:
        state = f"{rule['rows']:,}" if rule["on"] else "off"
        out.print(plain(f"  {state:>9}  {rule['rule'].replace('_', ' ')}: {rule['title']}"))
        for example in rule["examples"]:
            out.print(plain(f"             row {example['row']}{_because(example)}: {_text(example)}"), style="dim")


def _because(example: Out) -> str:
    """What a row repeats, contradicts or overlaps with."""
    words = "" if example["of_row"] is None else f" as row {example['of_row']}"
    if example["similarity"] is not None:
        words += f", similarity {example['similarity']:.2f}"
    if match := example["evaluation"]:
        words += f" in {match['name']} (prompt {match['position']}, {match['match']})"
    return words


def _text(example: Out) -> str:
    """The end of the prompt and the beginnings of the answers, on one line."""
    sample = example["sample"]["sample"]
    parts = (sample["prompt"][-1]["content"], answer_text(sample["chosen"]), answer_text(sample["rejected"]))
    return " | ".join(" ".join(part.split())[: _WIDTH // len(parts)] for part in parts)


def _print_made(made: Out, out: Console) -> None:
    origin = made["origin"]
    rows = f": {made['rows']:,} of {origin['read']:,} pairs of {origin['of']} ({made['held_out_rows']:,} held out)"
    out.print(Text.assemble(("Made ", "green"), (made["name"], "bold"), rows))
    for rule, count in origin["dropped"].items():
        out.print(f"  {count:,} dropped: {rule.replace('_', ' ')}")
