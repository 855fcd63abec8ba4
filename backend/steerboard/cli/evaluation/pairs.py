"""`steerboard evaluations pairs`: rankings and verdicts become a preference dataset."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, console, print_json
from steerboard.cli.output.listing import plain

app = typer.Typer()

Out = dict[str, Any]
_SOURCES = ("campaign", "judge")
_LEFT_OUT = {
    "no_answer": "an answer is missing",
    "empty": "a turn is empty",
    "identical": "both answers are the same",
    "disagreement": "too few of the votes prefer the chosen answer",
    "judge_not_valid": "the judge is not valid",
    "entrant_not_valid": "the judge is not valid for one of the two entrants",
    "one_order": "only one of both orders has a usable verdict",
}


@app.command()
def pairs(
    evaluation: Name,
    source: Annotated[
        list[str] | None,
        typer.Option("--from", help="campaign:NAME or judge:NAME (may be repeated); all valid sources by default."),
    ] = None,
    best_worst: Annotated[bool, typer.Option("--best-worst", help="Pair only the best answer with the worst.")] = False,
    majority: Annotated[
        bool, typer.Option("--majority", help="One row per pair of answers, by majority; otherwise one row per vote.")
    ] = False,
    min_agreement: Annotated[
        float | None, typer.Option(min=0, max=1, help="Minimum share of the votes for the chosen answer.")
    ] = None,
    criterion: Annotated[str | None, typer.Option(help="Use the rankings by this criterion.")] = None,
    train_all: Annotated[
        bool, typer.Option("--train-all", help="Train on pairs of held-out prompts, too; evaluations then report it.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Dataset name; a version is appended: NAME-1, NAME-2.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the pairs.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a preference dataset from people's rankings and judges' verdicts.

    Each row records who decided, how many voted on the two answers, and the share that agrees.
    """
    body: Out = {
        "from": [_source(name) for name in source] if source else None,
        "pairs": "best_worst" if best_worst else "all",
        "votes": "majority" if majority else "each",
        "min_agreement": min_agreement,
        "criterion": criterion,
    }
    client, path = Client(timeout=600.0), path_of("evaluations", evaluation, "preferences")
    if dry_run:
        preview: Out = client.post(f"{path}/preview", body)
        print_json(preview) if json else _print_preview(preview, train_all, console())
        return
    made: Out = client.post(path, {**body, "split": "train" if train_all else "by_prompt", "name": name})
    print_json(made) if json else _print_made(made, console())


def _source(given: str) -> Out:
    source, _, name = given.partition(":")
    if source not in _SOURCES or not name:
        raise typer.BadParameter(f"{given!r} is not campaign:NAME or judge:NAME", param_hint="--from")
    return {source: name}


def _print_preview(preview: Out, train_all: bool, out: Console) -> None:
    held_out = preview["held_out_pairs"]
    out.print(
        plain(f"{preview['pairs']:,} pairs, {held_out:,} of held-out prompts; from {', '.join(preview['sources'])}")
    )
    _print_agreement(preview["agreement"], preview["contested"], out)
    _print_left_out(preview["left_out"], preview["left_out_judges"], out)
    if not train_all:
        _print_nothing_to_train(preview["pairs"], held_out, out)


def _print_made(made: Out, out: Console) -> None:
    origin = made["origin"]
    rows = f": {made['rows']:,} pairs ({made['held_out_rows']:,} held out)"
    out.print(Text.assemble(("Made ", "green"), (made["name"], "bold"), rows))
    for source in origin["sources"]:
        out.print(plain(f"  from {source['kind']} {source['name']}"))
    _print_agreement(origin["agreement"], origin["contested"], out)
    _print_left_out(origin["left_out"], origin["left_out_judges"], out)
    _print_nothing_to_train(made["rows"], made["held_out_rows"], out)


def _print_nothing_to_train(pairs: int, held_out: int, out: Console) -> None:
    if pairs and held_out == pairs:
        out.print(
            "  all are of held-out prompts, so none is left to train on; --train-all trains on them", style="yellow"
        )


def _print_agreement(agreement: float | None, contested: int, out: Console) -> None:
    if agreement is not None:
        out.print(f"  agreement {agreement:.0%} on average; votes differ on {contested:,} of the compared answers")


def _print_left_out(left_out: dict[str, int], judges: dict[str, str], out: Console) -> None:
    for reason, count in left_out.items():
        out.print(f"  {count:,} left out: {_LEFT_OUT.get(reason, reason)}")
    for judge, why in judges.items():
        out.print(plain(f"  judge {judge} is not valid: {why}; --from judge:{judge} takes it all the same"))
