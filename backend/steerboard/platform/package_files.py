"""The files that belong to the code but are none: migrations, recipes, the built dashboard.

A wheel carries them inside the package (`setup.py` puts them there), so an image needs no checkout; in a checkout they
are read where they are written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGED = Path(__file__).resolve().parents[1] / "shipped"
_CHECKOUT = Path(__file__).resolve().parents[3]

Shipped = Literal["migrations", "recipes", "dashboard"]
_IN_CHECKOUT: dict[Shipped, Path] = {
    "migrations": _CHECKOUT / "migrations",
    "recipes": _CHECKOUT / "recipes",
    "dashboard": _CHECKOUT / "frontend" / "dist",
}


def folder(name: Shipped) -> Path:
    """It need not exist: a checkout has no dashboard before it is built."""
    return _PACKAGED / name if _PACKAGED.is_dir() else _IN_CHECKOUT[name]
