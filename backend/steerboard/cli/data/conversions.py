"""`steerboard datasets methods` and `convert`: what can learn from a dataset, and the conversions for it."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, print_json
from steerboard.cli.output.listing import plain

app = typer.Typer()

Out = dict[str, Any]
Name = Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")]
# Converting a large dataset takes long; only silence on the line itself is an error.
_PATIENT = httpx.Timeout(None, connect=5.0)


@app.command("methods")
def list_methods(dataset: Name, json: JsonOption = False) -> None:
    """List the methods that fit a dataset, as it is or after a conversion, with the rows that each would get.

    A conversion makes a new dataset and reports the rows that it loses and gains: steerboard datasets convert NAME
    CONVERSION.
    """
    with console(stderr=True).status(f"Looking through {dataset}"):
        fits: Out = Client().get(path_of("datasets", dataset, "methods"), timeout=_PATIENT)
    if json:
        print_json(fits)
    else:
        _print_methods(fits, console())


@app.command()
def convert(
    dataset: Name,
    conversion: Annotated[str, typer.Argument(help="A conversion listed by `steerboard datasets methods`.")],
    source: Annotated[str | None, typer.Option(help="Reward source for pinned_rewards.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new dataset; DATASET-CONVERSION-N by default.")] = None,
    json: JsonOption = False,
) -> None:
    """Convert a dataset into a new one of another kind. The original is unchanged; each new row names its source
    row."""
    body = {"conversion": conversion.replace("-", "_"), "source": source, "name": name}
    with console(stderr=True).status(f"Converting {dataset}"):
        made: Out = Client().post(path_of("datasets", dataset, "conversions"), body, timeout=_PATIENT)
    if json:
        print_json(made)
        return
    out = console()
    rows = f": {made['rows']:,} {made['kind']} ({made['held_out_rows']:,} held out)"
    out.print(Text.assemble(("Made ", "green"), (made["name"], "bold"), rows))
    for why, count in (made["origin"].get("lost") or {}).items():
        out.print(f"  {count:,} rows lost: {_words(why)}")


def _print_methods(fits: Out, out: Console) -> None:
    out.print(f"{fits['dataset']}: {fits['rows']:,} {fits['kind']}, {fits['held_out_rows']:,} held out")
    titles = {"as_is": "Fit as it is", "after_conversion": "Fit after a conversion", "none": "Do not fit"}
    for fit, title in titles.items():
        methods = [method for method in fits["methods"] if method["fit"] == fit]
        if not methods:
            continue
        out.print(Text(title, style="bold"))
        width = max(len(method["method"]) for method in methods)
        for method in methods:
            ways = [way for way in method["ways"] if way["why_not"] is None]
            if fit == "none":
                out.print(plain(f"  {method['method']:<{width}}  {method['why_not']}"), soft_wrap=True)
            for place, way in enumerate(ways):
                name = "" if place else method["method"]
                out.print(plain(f"  {name:<{width}}  {_way(way)}"), soft_wrap=True)


def _way(way: Out) -> str:
    learned = f"{way['train']:,} to learn from, {way['held_out']:,} held out"
    counts = [learned]
    if way["left_out"]:
        counts.append(f"{way['left_out']:,} left out")
    if way["conversion"] is None:
        return "; ".join(counts)
    name = way["conversion"] + (f" --source {way['source']}" if way["source"] else "")
    for key in ("lost", "gained", "tied"):
        if way[key]:
            counts.append(f"{way[key]:,} {key}")
    return f"{name}: {way['read']:,} rows become {way['rows']:,} {way['kind']}; " + ", ".join(counts)


def _words(why: str) -> str:
    return why.replace("_", " ")
