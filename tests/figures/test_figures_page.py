"""docs/figures.md: its example runs as it is written, on the published file that it names, and prints what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "figures.md"


def test_the_example_of_the_page_prints_what_the_page_shows(tmp_path: Path, published: Path) -> None:
    example, output = re.findall(r"^```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    shutil.copy(published / "fastchat" / "mt_bench_single_phi3dpo.jsonl", tmp_path / "gpt-4_single.jsonl")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", example],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == output
