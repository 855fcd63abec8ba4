"""`steerboard evaluations items`: the prompts behind a figure of the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, console, note, print_json
from steerboard.cli.output.listing import Column, print_table

app = typer.Typer()
Out = dict[str, Any]

_COLUMNS = (
    Column("position", right=True),
    Column("question", drop=2),
    Column("category", drop=4),
    Column("preferred", drop=1),
    Column("scores", drop=3),
    Column("characters", drop=3),
    Column("prompt", words=True),
)
_PAGE = 200


@app.command()
def items(
    evaluation: Name,
    a: Annotated[str | None, typer.Option("--a", help="Entrant whose outcomes are listed.")] = None,
    b: Annotated[str | None, typer.Option("--b", help="Entrant to compare it with.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Who compares: judge:NAME, human:CAMPAIGN, jury:NAME or reward:NAME.")
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="With --outcome disagree: the source that it disagrees with.")
    ] = None,
    outcome: Annotated[str | None, typer.Option(help="win, tie, loss, disagree or flip.")] = None,
    category: Annotated[str | None, typer.Option(help="Category of the prompts.")] = None,
    length: Annotated[
        str | None, typer.Option(help="Answer of --a against that of --b: longer, shorter or similar.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            help="score: of --a by --source, lowest first; difference: less that of --b; -score and -difference: "
            "highest first. By position without it."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50,
    json: JsonOption = False,
) -> None:
    """List the prompts behind a figure of the report, such as the losses of one entrant against another by a judge."""
    given = {"a": a, "b": b, "source": source, "other": other, "outcome": outcome}
    filters = {**given, "category": category, "length": length, "sort": sort}
    rows = list(_items(Client(timeout=600.0), evaluation, limit, filters))
    if json:
        print_json(rows)
        return
    if not rows:
        note("No prompt of the evaluation fits.")
        return
    print_table(console(), _COLUMNS, [_row(item, a, b, source) for item in rows])


def _items(client: Client, evaluation: str, limit: int, filters: dict[str, str | None]) -> Iterator[Out]:
    after: int | None = -1
    while limit > 0 and after is not None:
        page = client.get(path_of("evaluations", evaluation, "items"), after=after, limit=min(limit, _PAGE), **filters)
        yield from page["items"]
        limit -= len(page["items"])
        after = page["next"]


def _row(item: Out, a: str | None, b: str | None, source: str | None) -> tuple[Any, ...]:
    by_source = {f"{outcome['by']}:{outcome['source']}": outcome for outcome in item["outcomes"]}
    outcome = by_source.get(source or "", {}).get("outcome")
    preferred = {"win": a, "loss": b, "tie": "tie"}.get(outcome or "", "")
    scores = " / ".join("-" if score is None else f"{score:.2f}" for score in item["scores"])
    characters = " / ".join("-" if length is None else f"{length:.0f}" for length in item["lengths"])
    return (item["position"], item["question_id"], item["category"] or "", preferred, scores, characters, item["text"])
