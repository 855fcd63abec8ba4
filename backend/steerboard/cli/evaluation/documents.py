"""Files of YAML or JSON that commands send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from steerboard_contracts.errors import BadInput


def read_document(path: Path, hint: str) -> Any:
    """Raises `BadInput` (`no_such_file`) for a file that cannot be read; the `hint` is for one that is neither."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", code="no_such_file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} is neither YAML nor JSON: {error}", hint=hint) from None
