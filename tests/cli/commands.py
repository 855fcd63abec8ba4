"""Commands of the command line, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from steerboard_contracts.errors import SteerboardError


def run(app: object, *arguments: str) -> str:
    """What the command prints; its error is raised as `main` would meet it."""
    result = CliRunner().invoke(app, list(arguments))  # type: ignore[arg-type]
    if isinstance(result.exception, SteerboardError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout
