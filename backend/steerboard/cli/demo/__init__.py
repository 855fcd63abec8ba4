"""`steerboard demo` and `steerboard demo-real`: from nothing to aligned models and their report."""

from __future__ import annotations

import typer

from steerboard.cli.demo import real, synthetic

commands = typer.Typer()
commands.command("demo")(synthetic.demo)
commands.command("demo-real")(real.demo_real)
