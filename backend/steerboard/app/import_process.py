"""A process that imports, started by those below: `python -m steerboard.app.import_process import|requests ...`.

Datasets refer to models and the like, so every table has to be known. Requests also import for higher domains; the
process of one dataset's import asks them nothing, and starts a second sooner without them.
"""

from __future__ import annotations

import sys

from steerboard.app import tables
from steerboard.datasets.imports.execution import jobs, process

assert tables.metadata.tables


def _requests(arguments: list[str]) -> int:
    from steerboard.app.wiring import wire

    wire()
    return jobs.main(arguments)


_PARTS = {"import": process.main, "requests": _requests}

if __name__ == "__main__":
    sys.exit(_PARTS[sys.argv[1]](sys.argv[2:]))
