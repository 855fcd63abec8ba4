"""`steerboard figures`: a benchmark's figures from its judgment files, with no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from steerboard.cli.output.console import EXIT_FAILED, JsonOption, print_json
from steerboard_contracts.errors import BadInput

commands = typer.Typer()

_Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Judgment files of one format.")]
_Table = Path | None
_FORMATS = (
    "auto, alpaca_eval, fastchat_single, fastchat_pair, arena_hard, arena_bench, vicuna_review, rewardbench, "
    "rewardbench2, llmbar, pandalm, battles or leaderboards."
)


@commands.command()
def figures(
    files: _Files,
    format: Annotated[str, typer.Option(help=_FORMATS)] = "auto",
    json: JsonOption = False,
    threshold: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of unusable rows and verdicts above which a figure is invalid."),
    ] = 0.05,
    judge: Annotated[
        str | None, typer.Option(help="Only judgments of this judge; several judges in one file are never merged.")
    ] = None,
    crowd: Annotated[
        bool, typer.Option("--crowd", help="Battles: pool the votes of all voters, as an arena does.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Arena-Hard: the model to compare with. AlpacaEval: another baseline, by the weights of the fit."
        ),
    ] = None,
    questions: Annotated[
        _Table, typer.Option(exists=True, dir_okay=False, help="MT-Bench: questions with their categories.")
    ] = None,
    difficulty: Annotated[
        _Table,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="AlpacaEval: CSV with instruction_difficulty per prompt. Without it, the length-controlled rate "
            "is the variant `minimal`.",
        ),
    ] = None,
    gamed: Annotated[
        _Table,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="AlpacaEval: CSV of the gamed baselines. With difficulties and these the rate is the published one, "
            "without these the variant `no_regularisation`.",
        ),
    ] = None,
    prompts: Annotated[
        _Table,
        typer.Option(
            exists=True, dir_okay=False, help="AlpacaEval: the benchmark's prompts in order, to match rows by text."
        ),
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="AlpacaEval: the rows are in the benchmark's order."),
    ] = False,
    weights: Annotated[
        _Table,
        typer.Option(exists=True, dir_okay=False, help="AlpacaEval: CSV of published weights, used instead of a fit."),
    ] = None,
    save_weights: Annotated[
        _Table, typer.Option(dir_okay=False, help="AlpacaEval: where to write the weights of the fits, as CSV.")
    ] = None,
    c: Annotated[float | None, typer.Option(min=1e-9, help="AlpacaEval: fixed C, instead of cross-validation.")] = None,
    unparsed_wrong: Annotated[
        bool, typer.Option("--unparsed-wrong", help="PandaLM: an unparsed verdict is wrong, not a tie as published.")
    ] = False,
    verdicts: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD=READING", help="Read WORD as the verdict a, b, tie or none."),
    ] = None,
    reviewers: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=REVIEWER", help="Treat the judge or reviewer NAME as REVIEWER."),
    ] = None,
    repeats: Annotated[
        Literal["first", "last", "all"] | None,
        typer.Option(
            help="Row that counts if several are of one comparison and no time orders them; battles can keep all."
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Leaderboards: the column of the figure; once for both files, or once for each."),
    ] = None,
) -> None:
    """Compute a benchmark's published figures from its judgment files.

    Prints tables on a terminal, otherwise one JSON document. Exits with 1 if a figure is invalid.
    """
    # Imported here, so that no other command waits for scikit-learn.
    from steerboard_figures import judgment_figures
    from steerboard_figures.benchmark_files import length_control, tables

    for path in files:
        if not path.is_file():
            raise BadInput(f"{path} is not a regular file", hint="Write what the pipe gives to a file first.")
    control = length_control.LengthControl(
        difficulty=tables.read_difficulty(difficulty) if difficulty else None,
        prompts=tables.read_prompts(prompts) if prompts else None,
        gamed=tables.read_gamed(gamed) if gamed else None,
        weights=tables.read_weights(weights) if weights else {},
        c=c,
        in_order=in_order,
    )
    options = judgment_figures.Options(
        threshold=threshold,
        judge=judge,
        crowd=crowd,
        baseline=baseline,
        control=control,
        categories=tables.read_categories(questions) if questions else None,
        unparsed_is_tie=not unparsed_wrong,
        verdicts=_pairs("--verdicts", verdicts),
        reviewers=_pairs("--reviewers", reviewers),
        repeats=repeats,
        columns=column or (),
    )
    computed = judgment_figures.figures(files, format, options)
    if json or not sys.stdout.isatty():
        print_json(computed)
    else:
        from steerboard.cli.output.figures_table import print_figures

        print_figures(computed)
    # Behind the figures, which a folder that cannot be written to does not take away.
    if save_weights:
        tables.write_weights(save_weights, length_control.fitted_weights(computed.get("models") or ()))
    if not computed["valid"]:
        raise typer.Exit(EXIT_FAILED)


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """{left: right} of `left=right`, by the last sign of equality, for `A=B` is a verdict. Raises `BadInput`."""
    readings: dict[str, str] = {}
    for assignment in given or ():
        left, sign, right = (part.strip() for part in assignment.rpartition("="))
        if not (left and sign and right):
            raise BadInput(
                f"{option} {assignment} is not of the form WORD=READING", code="invalid_request", hint="As in x=y."
            )
        if readings.setdefault(left, right) != right:
            raise BadInput(
                f"{option} has two readings of {left!r}: {readings[left]} and {right}",
                code="invalid_request",
                hint="Give one of them.",
            )
    return readings
