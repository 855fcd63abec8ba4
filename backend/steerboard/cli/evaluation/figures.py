"""`steerboard figures`: a benchmark's figures from its judgment files, with no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steerboard.cli.output.console import print_json

commands = typer.Typer()

_Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Judgments of one format.")]
_Table = Path | None
_FORMATS = "auto, alpaca_eval, fastchat_single, fastchat_pair, arena_hard, arena_bench, vicuna_review or rewardbench."


@commands.command()
def figures(
    files: _Files,
    format: Annotated[str, typer.Option(help=_FORMATS)] = "auto",
    baseline: Annotated[str | None, typer.Option(help="Arena-Hard: the model to compare with.")] = None,
    difficulty: Annotated[
        _Table,
        typer.Option(exists=True, dir_okay=False, help="AlpacaEval: CSV with instruction_difficulty, a row a prompt."),
    ] = None,
    gamed: Annotated[
        _Table, typer.Option(exists=True, dir_okay=False, help="AlpacaEval: CSV of the gamed baselines.")
    ] = None,
    weights: Annotated[
        _Table,
        typer.Option(exists=True, dir_okay=False, help="AlpacaEval: CSV of published weights, taken instead of a fit."),
    ] = None,
    c: Annotated[float | None, typer.Option(min=1e-9, help="AlpacaEval: this C instead of cross-validation.")] = None,
) -> None:
    """What a benchmark's own scripts print, from its judgment files, as one JSON document."""
    # Imported here, so that no other command waits for scikit-learn.
    from steerboard.evaluation import figures as files_figures

    control = files_figures.LengthControl(
        difficulty=files_figures.read_difficulty(difficulty) if difficulty else None,
        gamed=files_figures.read_gamed(gamed) if gamed else None,
        weights=files_figures.read_weights(weights) if weights else {},
        c=c,
    )
    print_json(files_figures.figures(files, format, baseline, control))
