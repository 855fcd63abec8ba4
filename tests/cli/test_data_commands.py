"""`steerboard datasets` and `steerboard models` against a real server."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from commands import run
from sqlalchemy.orm import Session, sessionmaker
from typer.testing import CliRunner

from steerboard.accounts.tables import Project
from steerboard.cli.client import ApiError
from steerboard.cli.data import datasets
from steerboard.cli.models import models
from steerboard.cli.models.files import GUIDED_SCRIPT
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service as registry
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.models import ModelInfo
from support.processes.terminal import on_terminal


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "my pairs.jsonl"
    start = "\n\nHuman: Hi {}\n\nAssistant: "
    rows = [{"chosen": start.format(i) + "good", "rejected": start.format(i) + "bad"} for i in range(30)]
    rows += [rows[0], {"chosen": start + "x", "rejected": start + "x"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.usefixtures("server")
def test_an_import_tells_what_became_of_every_row(pairs: Path) -> None:
    printed = run(datasets.app, "import", str(pairs))
    for words in (
        "Imported my-pairs: 30 preferences",
        "transcripts",
        "32 rows read",
        "1 dropped: duplicate",
        "1 dropped: identical sides (chosen and rejected are the same text)",
        "--no-clean keeps duplicates and equal sides, for `steerboard datasets clean`, which shows examples",
    ):
        assert words in " ".join(printed.split())
    assert "--no-clean" not in run(datasets.app, "import", str(pairs), "--name", "whole", "--no-clean")
    assert "my-pairs" in run(datasets.app, "list")
    assert "30 preferences" in run(datasets.app, "show", "my-pairs")
    report = json.loads(run(datasets.app, "import", str(pairs), "--name", "again", "--json"))
    assert report["cleaned"] == {"duplicate": 1, "identical_sides": 1}


@pytest.mark.usefixtures("server")
def test_methods_are_listed_with_their_rows_and_reached_by_a_conversion(pairs: Path) -> None:
    run(datasets.app, "import", str(pairs), "--name", "pairs")
    listed = run(datasets.app, "methods", "pairs")
    fits, _, rest = listed.partition("Fit after a conversion")
    assert "dpo " in fits
    assert "sft " not in fits
    assert "chosen_responses: 30 rows become 30 instructions" in rest
    assert "rwr" in rest.partition("Do not fit")[2]
    assert "pairs-chosen-responses-1: 30 instructions" in run(datasets.app, "convert", "pairs", "chosen-responses")


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_an_exported_file_is_imported_back(pairs: Path, tmp_path: Path, ending: str) -> None:
    first = json.loads(run(datasets.app, "import", str(pairs), "--name", "first", "--json"))
    target = tmp_path / f"out.{ending}"
    run(datasets.app, "export", "first", str(target))
    again = json.loads(run(datasets.app, "import", str(target), "--name", "again", "--json"))
    assert again["format"] == ending
    assert again["dataset"]["content_hash"] == first["dataset"]["content_hash"]


@pytest.mark.usefixtures("server")
def test_bad_rows_are_refused_by_line_or_skipped_with_counts(tmp_path: Path) -> None:
    path = tmp_path / "graded.csv"
    path.write_text("prompt,response,gpt4_score\nHi,a,1\nHo,b,\nHu,c,3\n")
    mapping = ("--kind", "labelled", "--map", "reward=gpt4_score")
    with pytest.raises(ApiError, match="line 3"):
        run(datasets.app, "import", str(path), *mapping)
    printed = run(datasets.app, "import", str(path), *mapping, "--bad-rows", "skip")
    assert "1 bad rows skipped" in printed
    assert "1 x reward: is null" in printed
    assert "rewards of graded: mean 2" in printed


@pytest.mark.usefixtures("server")
def test_a_person_is_asked_before_columns_go_unused(tmp_path: Path) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text("".join(f'{{"prompt": "Hi {n}", "response": "a", "gpt4_score": {n}}}\n' for n in range(20)))
    refused = on_terminal(80, "datasets", "import", str(path), typed="n\n")
    assert "--kind labelled --map reward=gpt4_score" in " ".join(refused.split())
    assert "Imported" not in refused
    assert run(datasets.app, "list") == ""
    assert "Imported" in on_terminal(80, "datasets", "import", str(path), typed="y\n")
    assert "Import it anyway?" not in on_terminal(80, "datasets", "import", str(path), "--name", "b", "--yes")
    unasked = run(datasets.app, "import", str(path), "--name", "c")
    assert "gpt4_score: kept with each row; to use it as the reward of labelled" in unasked
    mapping = ("--kind", "labelled", "--map", "reward=gpt4_score")
    assert "not used" not in run(datasets.app, "import", str(path), "--name", "d", *mapping)


@pytest.mark.usefixtures("server")
def test_a_deleted_dataset_is_gone(pairs: Path) -> None:
    run(datasets.app, "import", str(pairs), "--name", "x")
    run(datasets.app, "delete", "x", "--yes")
    with pytest.raises(ApiError, match="no dataset 'x'"):
        run(datasets.app, "show", "x")


def model_folder(folder: Path) -> Path:
    folder.mkdir()
    header = b'{"w":{"dtype":"U8","shape":[7],"data_offsets":[0,7]}}'
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"weights")
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.usefixtures("server")
def test_an_exported_model_is_whole_or_not_there(
    sessions: sessionmaker[Session], project: Project, store: ArtifactStore, home: Path, tmp_path: Path
) -> None:
    folder = model_folder(tmp_path / "model")
    (folder / "sub").mkdir()
    (folder / "sub" / "note #1.txt").write_text("a name that must be quoted")
    info = ModelInfo(role="sft", method="sft", architecture="LlamaForCausalLM", parameters=7, max_length=64)
    (folder / "steerboard.json").write_text(info.model_dump_json())
    with transaction(sessions) as session:
        registry.register_model(
            session, store, project, name="m", folder=folder, role="sft", method="sft", parent_id=None, run_id=None
        )
    assert "LlamaForCausalLM" in run(models.app, "show", "m")
    assert "m model sft" in run(models.app, "lineage", "m")
    assert "m is now in the stage production" in run(
        models.app, "promote", "m", "--stage", "production", "--note", "best yet"
    )
    assert "production" in run(models.app, "list", "--stage", "production")
    assert "LlamaForCausalLM" in run(models.app, "show", "@production")
    with pytest.raises(ApiError, match="in the stage production"):
        run(models.app, "delete", "m", "--yes")
    assert "has no stage now" in run(models.app, "promote", "@production", "--stage", "none")
    target = tmp_path / "out" / "m"
    run(models.app, "export", "m", str(target))
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.relative_to(target): path.read_bytes() for path in target.rglob("*") if path.is_file()} == files
    with pytest.raises(SteerboardError, match="not empty"):
        run(models.app, "export", "m", str(target))

    (blob,) = (b for b in (home / "artifacts" / "blobs").rglob("*") if b.is_file() and b"weights" in b.read_bytes())
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes().replace(b"weights", b"WEIGHTS"))
    with pytest.raises(SteerboardError):
        run(models.app, "export", "m", str(tmp_path / "damaged"))
    assert not (tmp_path / "damaged").exists()
    assert list(tmp_path.glob(".damaged*")) == []


@pytest.mark.usefixtures("server")
def test_a_policy_that_takes_scores_is_exported_with_the_script_that_guides_it(
    sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path
) -> None:
    folder, target = model_folder(tmp_path / "model"), tmp_path / "out"
    info = ModelInfo(role="policy", architecture="LlamaForCausalLM", parameters=7, max_length=64)
    info = info.model_copy(update={"condition": ConditionFormat.of_score()})
    (folder / "steerboard.json").write_text(info.model_dump_json())
    with transaction(sessions) as session:
        registry.register_model(
            session, store, project, name="dt", folder=folder, role="policy", method=None, parent_id=None, run_id=None
        )
    assert "sample_guided.py in it samples with guidance" in run(models.app, "export", "dt", str(target))
    assert {path.name for path in target.iterdir()} == {path.name for path in folder.iterdir()} | {GUIDED_SCRIPT.name}
    assert (target / GUIDED_SCRIPT.name).read_bytes() == GUIDED_SCRIPT.read_bytes()


@pytest.mark.usefixtures("server")
def test_pairs_are_cleaned_after_a_dry_run_has_counted_them(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    rows = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": "No"} for n in range(20)]
    rows += [{**rows[0], "chosen": "No", "rejected": "Yes 0"}, rows[1]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(datasets.app, "import", str(path), "--no-clean")
    printed = run(datasets.app, "clean", "votes", "--dry-run")
    assert "22 pairs: 19 kept, 3 dropped" in printed
    assert "2 contradiction: the same answers are preferred the other way round" in " ".join(printed.split())
    assert "row 21 as row 1: Question 1? | Yes 1 | No" in printed
    assert "off  small margin" in printed
    rules = ("--keep", "contradiction", "--similarity", "0.9")
    counted = json.loads(run(datasets.app, "clean", "votes", "--dry-run", "--json", *rules))
    assert (counted["kept"], counted["rows"]) == (21, 22)
    printed = run(datasets.app, "clean", "votes", *rules)
    assert "Made votes-clean-1: 21 of 22 pairs of votes" in printed
    assert "1 dropped: duplicate" in printed
    with pytest.raises(ApiError, match="drop no row"):
        run(datasets.app, "clean", "votes-clean-1", *rules)
    refused = CliRunner().invoke(datasets.app, ["clean", "votes", "--keep", "poems"])
    assert refused.exit_code == 2
