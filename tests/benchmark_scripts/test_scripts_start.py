"""Every benchmark can be started, and describes what it measures."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "benchmarks"
MADE = re.findall(r"benchmarks/(\w+)\.py \$\(BENCH_ARGS\)", (ROOT / "Makefile").read_text())


def test_each_target_of_make_has_a_script() -> None:
    assert MADE
    assert set(MADE) <= {path.stem for path in SCRIPTS.glob("*.py")}


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_help_is_printed_without_measuring(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {name}.py")
