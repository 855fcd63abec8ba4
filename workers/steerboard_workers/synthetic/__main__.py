"""`python -m steerboard_workers.synthetic DIR`: write the synthetic demo data into DIR."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from steerboard_workers.synthetic.writer import write_demo_data

if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m steerboard_workers.synthetic DIR", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(write_demo_data(Path(sys.argv[1]))))
