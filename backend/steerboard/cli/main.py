"""The command line of Steerboard. Errors are one readable message and an exit code, never a traceback.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage (64 for `gate` and `evaluations`), 69 no server answers, 130
interrupted.
"""

from __future__ import annotations

import logging
import os
import sys

import typer

from steerboard.cli import (
    agents,
    comments,
    demo,
    generate,
    links,
    maintenance,
    methods,
    pipelines,
    placement,
    pushing,
    recipes,
    runs,
    secrets,
    tokens,
    trackers,
)
from steerboard.cli.client import ServerUnreachable, print_error
from steerboard.cli.data import datasets
from steerboard.cli.evaluation import arena, evaluations, figures, gate
from steerboard.cli.models import models
from steerboard.cli.server import servers, services
from steerboard_contracts.errors import SteerboardError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

for _commands in (
    services.commands,
    servers.commands,
    demo.commands,
    recipes.commands,
    methods.commands,
    generate.commands,
    placement.commands,
    figures.commands,
    gate.commands,
    maintenance.commands,
    agents.commands,
):
    app.add_typer(_commands)
for _name, _group in {
    "recipes": recipes.app,
    "pipelines": pipelines.app,
    "runs": runs.app,
    "datasets": datasets.app,
    "models": models.app,
    "evaluations": evaluations.app,
    "arena": arena.app,
    "comments": comments.app,
    "links": links.app,
    "tokens": tokens.app,
    "hub-token": pushing.token_app,
    "secrets": secrets.app,
    "trackers": trackers.app,
}.items():
    app.add_typer(_group, name=_name)


def main() -> None:
    logging.basicConfig(
        level=os.environ.get("STEERBOARD_LOG_LEVEL", "WARNING"), format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        app()
    except SteerboardError as error:
        print_error(error)
        sys.exit(69 if isinstance(error, ServerUnreachable) else 1)
    except OSError as error:
        # Imported here: no command that goes well waits for it.
        from steerboard.platform.processes.startup import refused

        print_error(refused(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
