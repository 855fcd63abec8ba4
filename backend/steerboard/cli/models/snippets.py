"""`steerboard models snippet`: code that asks a model outside of the platform."""

from __future__ import annotations

from typing import Annotated

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, print_json
from steerboard.publishing.snippets import SnippetFor


def snippet(
    model: Annotated[str, typer.Argument(help="Name, id or the end of an id, @production or @production-reward.")],
    where: Annotated[SnippetFor, typer.Option("--for", help="What runs the model.")] = "transformers",
    score: Annotated[
        str | None, typer.Option(help="Requested score, or helpfulness:4,verbosity:2. Default: the model's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print Python that asks a model, with its chat template and its score."""
    query = {"for": where} if score is None else {"for": where, "score": score}
    snippet_ = Client().get(path_of("models", model, "snippet"), **query)
    if json:
        print_json(snippet_)
    else:
        typer.echo(snippet_["text"], nl=False)
