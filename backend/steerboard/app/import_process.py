"""A process that imports, started by those below: `python -m steerboard.app.import_process import|requests ...`.

Datasets refer to models and the like, so every table has to be known.
"""

from __future__ import annotations

import sys

from steerboard.app import tables
from steerboard.datasets.imports.execution import jobs, process

assert tables.metadata.tables

_PARTS = {"import": process.main, "requests": jobs.main}

if __name__ == "__main__":
    sys.exit(_PARTS[sys.argv[1]](sys.argv[2:]))
