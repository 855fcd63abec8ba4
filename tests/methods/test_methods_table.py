"""The table of methods in docs/training.md is made from their descriptions.

Regenerate it with: python tests/methods/test_methods_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from steerboard_contracts.methods import methods

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
PLACE = re.compile(r"(?<=<!-- methods -->\n).*(?=<!-- /methods -->)", re.DOTALL)


def table() -> str:
    lines = ["| `method` | | | Data | Makes | Source |", "| --- | --- | --- | --- | --- | --- |"]
    for spec in methods().values():
        if spec.package is None:
            what = f"| `{spec.name}` | {spec.title} | {spec.about}"
            lines.append(f"{what} | {', '.join(spec.data)} | {', '.join(spec.outputs)} | {spec.source} |")
    return "\n".join(lines) + "\n"


def test_the_table_is_fresh() -> None:
    match = PLACE.search(PAGE.read_text())
    assert match is not None
    assert match[0] == table(), f"stale: python {Path(__file__).relative_to(PAGE.parents[1])}"


if __name__ == "__main__":
    PAGE.write_text(PLACE.sub(lambda _: table(), PAGE.read_text()))
