"""Blocks of docs/take-your-model.md, run by a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.patience import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "take-your-model.md"


def blocks(*begins: str) -> str:
    shell_blocks = PAGE.read_text().split("```sh\n")[1:]
    texts = [text.split("```")[0] for text in shell_blocks]
    return "\n".join(next(text for text in texts if text.startswith(begin)) for begin in begins)


def shell(script: str, url: str, token: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STEERBOARD_URL": url,
        "STEERBOARD_TOKEN": token,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
