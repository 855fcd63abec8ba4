"""Environment files for tests, as an operator would allow them, and the config that names one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def environment(name: str, **fields: Any) -> dict[str, Any]:
    return of_file(FOLDER / f"{name}.py", **fields)


def of_file(file: Path, **fields: Any) -> dict[str, Any]:
    return {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), **fields}
