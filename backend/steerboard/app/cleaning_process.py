"""A process that cleans one dataset: `python -m steerboard.app.cleaning_process SOCKET`.

Datasets refer to models and the like, so every table has to be known; and evaluations are asked for their prompts.
"""

from __future__ import annotations

import sys

from steerboard.app import tables
from steerboard.app.wiring import wire
from steerboard.datasets.cleaning import process

assert tables.metadata.tables

if __name__ == "__main__":
    wire()
    sys.exit(process.main(sys.argv[1:]))
