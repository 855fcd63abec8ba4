"""A sweep in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from steerboard.cli.output.sweep_table import print_sweep
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sweep import SweepReport, VariantRow

FOUND = SweepReport(
    pipeline="dpo-sweep-1",
    search="grid",
    seed=None,
    fields=["dpo.beta"],
    metric="report.independent",
    goal="maximize",
    figure="mean reward by independent",
    units="z",
    prompts=100,
    compared_by="prompts",
    best=2,
    within_noise=[3],
    verdict="Variant 2 (dpo.beta 0.1) has the highest mean reward; variant 3 is within noise of it.",
    notes=["It is flattered."],
    variants=[
        VariantRow(
            number=number,
            values={"dpo.beta": beta},
            stage=f"dpo-{number}",
            stages=[f"dpo-{number}"],
            state="succeeded",
            figure=figure and Estimate(value=figure, low=figure - 0.1, high=figure + 0.1, n=100),
            behind=behind and Estimate(value=behind, n=100),
            within_noise=noise,
            device_seconds=12.0,
        )
        for number, beta, figure, behind, noise in (
            (1, 1e-6, 0.25, 0.25, False),
            (2, 0.1, 0.5, None, None),
            (3, 0.5, 0.45, 0.05, True),
            (4, 0.9, None, None, None),
        )
    ],
)


def printed(*, terminal: bool, width: int = 140) -> list[str]:
    out = io.StringIO()
    print_sweep(Console(file=out, width=width, force_terminal=terminal, color_system=None), FOUND)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_every_variant_has_its_settings_its_figure_and_how_it_stands() -> None:
    lines = printed(terminal=True)
    rows = [" ".join(line.split()) for line in lines]
    assert "1 1e-06 succeeded 0.25 [0.15, 0.35] 0.25 12.0" in rows
    assert "2 0.1 succeeded 0.5 [0.4, 0.6] best 12.0" in rows
    assert "3 0.5 succeeded 0.45 [0.35, 0.55] 0.05 within noise 12.0" in rows
    assert "4 0.9 succeeded 12.0" in rows
    assert lines[-2:] == [FOUND.verdict, "It is flattered."]


def test_a_narrow_terminal_keeps_settings_and_figures_and_a_pipe_gets_every_column() -> None:
    narrow = printed(terminal=True, width=60)
    assert max(map(len, narrow[:5])) <= 60, narrow
    assert any("0.1" in line and "0.5 [0.4, 0.6]" in line for line in narrow)
    piped = printed(terminal=False)
    assert piped[2].split("\t") == ["2", "0.1", "succeeded", "0.5 [0.4, 0.6]", "", "best", "12.0"]
