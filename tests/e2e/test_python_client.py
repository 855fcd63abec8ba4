"""The Python client against a real server with a worker: from rows to a gate, and with asyncio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import polars as pl
import pytest
from dashboard_world import RECIPE, World, instructions

import steerboard_client as sb
from steerboard_client import aio
from support.patience import PATIENCE

T = TypeVar("T")
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def in_a_thread(work: Callable[[], T]) -> T:
    """The browser of other tests has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.fixture
def board(world: World, monkeypatch: pytest.MonkeyPatch) -> sb.Board:
    """Signed in as the command line is on this machine."""
    for name in ("STEERBOARD_URL", "STEERBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEERBOARD_HOME", str(world.home))
    return sb.connect()


def test_rows_travel_as_frames_and_come_back_alike(board: sb.Board, tmp_path: Path) -> None:
    rows = [{"prompt": f"Name {number}.", "response": f"A {number}."} for number in range(9)]
    frame = pd.DataFrame([*rows, {"prompt": "Name 9.", "response": "A 9.", "source": "made"}])
    made = board.upload_dataset("from-pandas", frame)
    assert (made.info.kind, len(made)) == ("instructions", 10)
    back = made.to_pandas()
    assert set(back["response"]) == {f"A {number}." for number in range(10)}
    assert back["source"].dropna().to_list() == ["made"]
    again = board.upload_dataset("from-polars", pl.DataFrame(rows), kind="instructions")
    assert len(made.to_polars()) == len(made.to_arrow()) == len(made.to_datasets()) == 10
    file = again.download(tmp_path / "rows.jsonl.gz")
    assert len(board.upload_dataset("from-file", file)) == 9
    assert "from-file" in [one.name for one in board.datasets(kind=["instructions"])]


def test_an_upload_that_broke_off_continues_with_the_missing_parts(
    board: sb.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"prompt": f"Name {number}.", "response": "x" * 20_000} for number in range(900)]  # three parts
    sent: list[str] = []
    post = board.connection.post

    def post_until_it_breaks(path: str, body: Any = None, **options: Any) -> Any:
        if "/parts/" in path:
            if len(sent) == 2:
                raise sb.ServerUnreachable("The connection broke.")
            sent.append(path)
        return post(path, body, **options)

    monkeypatch.setattr(board.connection, "post", post_until_it_breaks)
    with pytest.raises(sb.ServerUnreachable):
        board.upload_dataset("in-parts", rows)
    first = [path.rpartition("/")[2] for path in sent]
    sent.clear()
    assert len(board.upload_dataset("in-parts", rows)) == 900
    assert (first, [path.rpartition("/")[2] for path in sent]) == (["0", "1"], ["2"])


def test_rows_that_cannot_be_imported_are_refused_with_their_code(board: sb.Board) -> None:
    with pytest.raises(sb.SteerboardError) as refused:
        board.upload_dataset("no-text", [{"what": 1}])
    assert refused.value.code != "error"
    with pytest.raises(sb.BadInput, match="row 2 is of type int"):
        board.upload_dataset("numbers", [{"prompt": "Hi."}, 7])
    with pytest.raises(sb.ApiError) as unknown:
        board.dataset("nothing-of-this-name")
    assert unknown.value.status == 404
    assert unknown.value.code in str(unknown.value)


def test_a_recipe_runs_from_launch_to_answers_at_both_ends(board: sb.Board, pipeline: str, tmp_path: Path) -> None:
    things = board.dataset("things")
    launched = board.launch(RECIPE, instructions=things, preferences="pairs")  # reuses what `pipeline` has made
    launched.wait(timeout=PATIENCE, progress=False)
    assert launched.state == "succeeded"
    frame = board.run(f"{pipeline}.dt").metrics("loss")
    assert frame.index.name == "step"
    assert frame["loss"].notna().sum() > 1
    policy = launched.model("dt")
    answers = [policy.generate("Name a thing that is red 1.", score, max_new_tokens=8) for score in (5.0, -5.0)]
    assert all(isinstance(answer, str) for answer in answers)
    assert len(policy.generate("Name a thing.", 5.0, n=2, temperature=1.0, max_new_tokens=4)) == 2
    folder = policy.download(tmp_path / "policy")
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
    weights = next(folder.glob("*.safetensors"))
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    policy.download(folder)
    assert weights.read_bytes() == whole
    report = launched.report()
    assert report.methods
    short = {"rules": [{"metric": "length_mean", "entrant": "sft", "op": ">", "value": 1}], "min_n": 2}
    assert launched.gate(short).verdict == "pass"


def test_runs_are_started_by_keywords_and_end_with_their_code(
    board: sb.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = {"source": "random:tiny-llama", "vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2}
    base = board.start("base", name="client-base", data=["things"], **tiny).wait(timeout=PATIENCE, progress=False)
    run = board.start("sft", name="client-sft", model=base.model(), data="things", max_steps=2, batch=4, reuse=False)
    run.wait(timeout=PATIENCE, progress=False, log=True)
    lines = [f"client-sft: {line.message}" for line in run.logs()]
    assert capsys.readouterr().err.splitlines() == lines != []
    with pytest.raises(sb.BadInput, match="made no dataset"):
        run.dataset()
    with pytest.raises(sb.ApiError):
        board.start("sft", model=base.model(), data="things", max_step=2)
    with pytest.raises(sb.BadInput, match="there is no run of kind"):
        board.start("sftt")
    long = board.start("sft", name="client-long", model=base.model(), data="things", epochs=1000, batch=4)
    with pytest.raises(sb.WaitTimeout):
        long.wait(timeout=0, progress=False)
    with pytest.raises(sb.RunFailed) as ended:
        long.cancel().wait(timeout=PATIENCE, progress=False)
    assert ended.value.code != "run_failed"


def test_an_evaluation_is_begun_awaited_gated_and_ranked(board: sb.Board, pipeline: str) -> None:
    entrants = [f"{pipeline}.sft", {"model": board.model(f"{pipeline}.dt"), "score": 5.0, "name": "up"}]
    made = board.evaluate("by-client", prompts="things", entrants=entrants, rewards=[f"{pipeline}.reward"])
    made.wait(timeout=PATIENCE)
    report = made.report()
    assert {row.name for row in report.entrants} >= {"up"}
    rule = {"metric": "reward_mean", "entrant": "up", "by": "reward", "op": ">"}
    gates = [made.gate({"rules": [{**rule, "value": bar}], "min_n": 2}) for bar in (-100, 100)]
    assert [gate.verdict for gate in gates] == ["pass", "fail"]
    link = made.rank_link(annotator="ann-by-client", overlap=1)
    assert "/sign-in/" in link


def test_asyncio_has_the_same_names(board: sb.Board) -> None:
    async def work() -> list[str]:
        async with aio.connect() as there:
            made = await there.upload_dataset("from-aio", instructions())
            return [row["prompt"] for row in await made.rows()]

    assert len(in_a_thread(lambda: asyncio.run(work()))) == len(instructions())
    assert {name for name in dir(sb.Board) if name[0] != "_"} - {"close"} == {
        name for name in dir(aio.Board) if name[0] != "_"
    } - {"aclose"}


def test_the_page_for_notebooks_runs(
    board: sb.Board, pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(RECIPE)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        in_a_thread(partial(exec, compile(block, str(PAGE), "exec"), names))
    assert (tmp_path / "steered" / "config.json").is_file()
    printed = capsys.readouterr().out
    assert "/sign-in/" in printed
    assert "pass" in printed


def test_a_suite_of_tests_holds_the_gate(
    board: sb.Board, world: World, pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "test_gate.py"
    rule = {"metric": "length_mean", "entrant": "sft", "op": ">"}
    suite.write_text(
        "import pytest\n@pytest.mark.parametrize('bar', [1, 1_000_000])\ndef test_it(steerboard_gate, bar):\n"
        f"    steerboard_gate({pipeline!r}, {{'rules': [{{**{rule!r}, 'value': bar}}], 'min_n': 2}})\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "length_mean" in done.stdout
