"""Blocks of the docs that need no model: cleaning, conversions, attributes, notices, what fits on devices."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from page_blocks import ROOT, Named, blocks_of, runs
from reader import PAIRS, QUESTIONS, TEXTS, Reader

LONG = " ".join(f"word{n}" for n in range(80))


def dropped(reader: Reader, dataset: str) -> Any:
    return reader.get(f"datasets/{dataset}")["origin"]["dropped"]


@runs(Named("cleaning.md", "steerboard datasets clean hh --dry-run"))
def test_cleaning_counts_first_and_then_makes_versions_without_what_the_rules_drop(
    reader: Reader, blocks: list[Named]
) -> None:
    pairs = [
        *PAIRS,
        {"prompt": "Tell me all.", "chosen": LONG, "rejected": "No."},
        {"prompt": "Tell me all.", "chosen": LONG + " more", "rejected": "No."},
        {"prompt": "Which is better?", "chosen": "Tea.", "rejected": "Coffee.", "margin": 0.1},
        # Some of them are in the training split.
        *(
            {"prompt": question["turns"][0], "chosen": "Yes.", "rejected": "No.", "margin": 2.0}
            for question in QUESTIONS * 2
        ),
    ]
    reader.dataset("hh", "preferences", pairs)
    reader.write("questions.jsonl", QUESTIONS)
    reader.shell("steerboard evaluations import-prompts questions.jsonl --name mt-bench")
    counts, *lines = blocks[0].text.splitlines()
    printed = reader.shell(counts)
    assert "near duplicate: " in printed
    assert "similarity 0.9" in printed
    assert [dataset["name"] for dataset in reader.get("datasets")["items"]] == ["hh"]
    reader.shell(*lines)
    assert dropped(reader, "hh-clean-1").keys() == {"evaluation_overlap"}
    assert dropped(reader, "hh-tidy").keys() == {"small_margin", "evaluation_overlap", "near_duplicate"}


@runs(
    Named("training.md", "steerboard datasets import answers.jsonl --kind labelled"),
    Named("training.md", "steerboard datasets methods graded"),
)
def test_graded_answers_keep_their_attributes_and_become_pairs(reader: Reader, blocks: list[Named]) -> None:
    answers = [
        {"prompt": f"Question {n}?", "response": f"Answer {grade}.", "quality": grade, "helpfulness": 4 - grade}
        | ({"verbosity": grade} if n else {})
        for n in range(10)
        for grade in range(3)
    ]
    reader.write("answers.jsonl", answers)
    printed = reader.shell(*blocks)
    reader.shell("steerboard datasets export graded exported.jsonl")
    rows = [json.loads(line) for line in (reader.folder / "exported.jsonl").read_text().splitlines()]
    assert [row["attributes"] for row in rows if row["response"] == "Answer 1."] == [
        {"helpfulness": 3} | ({"verbosity": 1} if n else {}) for n in range(10)
    ]
    assert [row["reward"] for row in rows] == [answer["quality"] for answer in answers]
    fit, convertible = printed[printed.index("Fit as it is") :].split("Fit after a conversion")
    assert "  rwr " in fit
    assert "  dpo " in convertible
    made = reader.get("datasets/graded-pairs-from-ranks-1")
    assert (made["kind"], made["rows"]) == ("preferences", 30)


@runs(Named("notices.md", "curl"))
def test_a_webhook_is_made_by_curl_and_its_secret_is_shown(reader: Reader, blocks: list[Named]) -> None:
    token = "TOKEN=$(STEERBOARD_PROJECT=default steerboard tokens create hooks --scope admin)"
    made = json.loads(reader.shell(token, *blocks))
    assert made["secret"].startswith("whsec_")
    assert made["events"] == ["pipeline.succeeded", "pipeline.failed"]


@runs(
    Named("trackers.md", "steerboard trackers create tensorboard"),
    Named("trackers.md", "steerboard trackers change"),
    Named("trackers.md", "MLFLOW_PASSWORD"),
    Named("trackers.md", "steerboard runs import"),
)
def test_trackers_are_made_and_switched_off_and_on(reader: Reader, blocks: list[Named]) -> None:
    state = {"log_history": [{"loss": 0.7, "step": 10}, {"loss": 0.5, "step": 20}]}
    (reader.folder / "trainer_state.json").write_text(json.dumps(state))
    printed = reader.shell(*blocks)
    assert reader.get("runs/trl-dpo")["summary"] == {"loss": 0.5}
    assert "curves exports the train runs that begin from now on" in printed
    made = {one["name"]: one for one in reader.get("trackers")}
    assert made["curves"]["active"]
    assert made["curves"]["folder"].endswith("/curves")
    assert (made["lab"]["has_secret"], made["lab"]["settings"]["user"]) == (True, "anna")


@runs(Named("engines.md", "steerboard placement"))
def test_a_placement_that_does_not_fit_comes_with_the_change_of_which_the_page_tells(
    reader: Reader, blocks: list[Named]
) -> None:
    training = next(line for line in reader.shell(*blocks, status=1).splitlines() if line.startswith("training"))
    assert re.search(r"no, 2\.\d too much", training)
    assert "no, " not in reader.shell(blocks[0].text.rstrip() + " --set offload=optimiser")


@runs(Named("runs.md", "python -m steerboard_workers.stages"))
def test_a_stage_runs_by_hand_on_its_folder(reader: Reader, blocks: list[Named]) -> None:
    sys.path.append(str(ROOT / "tests" / "stages"))
    from hand_pipeline import HandPipeline

    world = HandPipeline(reader.folder)
    world.dataset("things", "instructions", [{"prompt": prompt, "response": answer} for prompt, answer in TEXTS])
    world.prepare("FOLDER", {"run": "mix", "parts": [{"share": "auto"}], "size": 10}, {"parts.0": "things"})
    reader.shell(*blocks)
    (mixture,) = (reader.folder / "FOLDER").rglob("mixture.jsonl")
    assert len(mixture.read_text().splitlines()) == 10


def test_the_settings_of_the_measured_run_are_those_of_the_recipe(reader: Reader, model_folders: Path) -> None:
    """It trains for hours, so it is checked and not run."""
    for name in ("hh", "oa"):
        reader.dataset(name, "preferences", PAIRS)
    shutil.copytree(model_folders / "foreign", reader.folder / "BASE")
    results = blocks_of(ROOT / "benchmarks" / "RESULTS.md")
    (command,) = [block.text for block in results if block.text.startswith("steerboard run small-base")]
    printed = reader.shell(command.replace("steerboard run", "steerboard recipes check").replace("=BASE", "=./BASE"))
    assert "lr 2e-05" in next(line for line in printed.splitlines() if line.startswith("dpo\t"))
