"""Model folders whose template or tokenizer was made to do harm. Each takes a folder that is fine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages[0].content }}"
# Takes minutes inside of the tokenizer's library, where nothing of Python can interrupt it.
SLOW_TEXT = ("a" * 30 + "! ") * 4000


def endless_template(good: Path, folder: Path) -> Path:
    """Its chat template does not come to an end."""
    _copy(good, folder)
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    _change(folder / "tokenizer_config.json", lambda config: config.update(chat_template=ENDLESS))
    _change(folder / "steerboard.json", lambda info: info.update(template="chat"))
    return folder


def panicking_tokenizer(good: Path, folder: Path) -> Path:
    """Every text makes its tokenizer panic."""
    return _with_splitter(good, folder, {"type": "FixedLength", "length": 0})


def slow_tokenizer(good: Path, folder: Path) -> Path:
    """It hangs on `SLOW_TEXT`."""
    pattern = {"Regex": "(a|aa)+$"}
    return _with_splitter(good, folder, {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})


def _with_splitter(good: Path, folder: Path, splitter: dict[str, Any]) -> Path:
    _copy(good, folder)

    def put_first(tokenizer: dict[str, Any]) -> None:
        both = [splitter, tokenizer["pre_tokenizer"]]
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": both}

    _change(folder / "tokenizer.json", put_first)
    return folder


def _copy(good: Path, folder: Path) -> None:
    shutil.copytree(good, folder)


def _change(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
