"""Which methods fit a dataset, with counts that hold: a conversion makes the rows, and a method learns from the rows,
that were announced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.rows.exporting import write_for_stage
from steerboard.datasets.service import register_rows
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.judge_prompts import fastchat_prompts
from steerboard_contracts.methods import methods
from steerboard_contracts.samples import SampleKind
from steerboard_workers.alignment.methods import training_of

BASE = "/api/v1/projects/default/datasets"

PAIRS: list[dict[str, Any]] = [
    *({"prompt": f"Question {n}?", "chosen": f"Good {n}.", "rejected": f"Bad {n}."} for n in range(24)),
    {"prompt": "Question 1?", "chosen": "Good 1.", "rejected": "Worse 1."},
    {"prompt": "Question 2?", "chosen": "So.", "rejected": "So."},
    {"prompt": "Question 3?", "chosen": "So.", "rejected": "So.\n"},
]
THUMBS: list[dict[str, Any]] = [
    *({"prompt": f"Question {n}?", "response": "Good.", "desirable": True} for n in range(12)),
    *({"prompt": f"Question {n}?", "response": "Bad.", "desirable": False} for n in range(6)),
    *({"prompt": f"Question {n}?", "response": "Good.", "desirable": False} for n in range(3)),
]
# By prompt: four ranked answers; two of equal scores; one; three of which two are the same text.
SCORED: list[dict[str, Any]] = [
    *({"prompt": "Ranked?", "response": f"Answer {n}", "reward": float(n)} for n in range(4)),
    *({"prompt": "Tied?", "response": f"Answer {n}", "reward": 3.0} for n in range(2)),
    {"prompt": "Alone?", "response": "Answer", "reward": 0.25},
    *({"prompt": "Twice?", "response": text, "reward": 2.0} for text in ("Same", "Same", "Other")),
]
PLAIN: list[dict[str, Any]] = [{"prompt": f"Question {n}?", "response": f"Answer {n}"} for n in range(20)]

STEPS: list[dict[str, Any]] = [
    {"prompt": f"Question {n}?", "completions": ["First.", "Then."], "labels": [True, n % 2 == 0]} for n in range(20)
]


class Picker:
    def __init__(self, client: TestClient, sessions: sessionmaker[Session], folder: Path) -> None:
        self.client, self.sessions, self.folder = client, sessions, folder

    def dataset(self, kind: SampleKind, rows: list[dict[str, Any]], name: str, held_out: float = 0.3) -> None:
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with transaction(self.sessions) as session:
            project = session.scalars(select(Project)).one()
            project.held_out_fraction = held_out
            register_rows(session, project, name=name, kind=kind, path=path, run_id=None)

    def methods(self, dataset: str) -> dict[str, Any]:
        answer = self.client.get(f"{BASE}/{dataset}/methods")
        assert answer.status_code == 200, answer.text
        return {method["method"]: method for method in answer.json()["methods"]}

    def convert(self, dataset: str, conversion: str, status: int = 201, **more: Any) -> Any:
        answer = self.client.post(f"{BASE}/{dataset}/conversions", json={"conversion": conversion, **more})
        assert answer.status_code == status, answer.text
        return answer.json()

    def learned(self, dataset: str, method: str) -> tuple[int, int]:
        """What the worker's half of a method takes: training rows, held-out rows."""
        with transaction(self.sessions) as session:
            stored = session.scalars(select(Dataset).where(Dataset.name == dataset)).one()
            given = write_for_stage(session, stored, self.folder / "stage.jsonl")
        rows = [json.loads(line) for line in Path(given.path).read_text().splitlines()]
        taken = training_of(methods()[method].config(method=method)).select(rows, given).rows
        train = sum(row["split"] == "train" for row in taken)
        return train, len(taken) - train

    def refused(self, dataset: str, method: str) -> bool:
        """No training row is left, or the method raises."""
        try:
            return self.learned(dataset, method)[0] == 0
        except SteerboardError:
            return True


@pytest.fixture
def picker(client: TestClient, sessions: sessionmaker[Session], tmp_path: Path) -> Picker:
    made = Picker(client, sessions, tmp_path)
    made.dataset("preferences", PAIRS, "pairs")
    made.dataset("unpaired", THUMBS, "thumbs")
    made.dataset("labelled", SCORED, "scored", 1e-9)
    made.dataset("instructions", PLAIN, "plain")
    made.dataset("stepwise", STEPS, "steps")
    return made


def test_every_way_that_is_offered_gives_each_method_the_rows_that_were_counted(picker: Picker) -> None:
    """The counts of the API against what conversions write and what the methods of the workers select."""
    tried = set()
    made: dict[tuple[str, str], Any] = {}
    for dataset in ("pairs", "thumbs", "scored", "plain", "steps"):
        for name, method in picker.methods(dataset).items():
            for way in method["ways"]:
                used = dataset
                if way["conversion"] is not None:
                    key = (dataset, way["conversion"])
                    made[key] = made.get(key) or picker.convert(dataset, way["conversion"])
                    assert (made[key]["kind"], made[key]["rows"]) == (way["kind"], way["rows"]), key
                    used = made[key]["name"]
                tried.add((dataset, way["conversion"], name))
                if way["why_not"] is None:
                    assert picker.learned(used, name) == (way["train"], way["held_out"]), (used, name)
                else:
                    assert picker.refused(used, name), (used, name, way["why_not"])
                assert way["read"] - way["lost"] <= way["rows"] * 2
    assert len({name for _, _, name in tried}) == len(methods())
    assert {conversion for _, conversion, _ in tried} == {
        None,
        "chosen_responses",
        "thumbs_from_pairs",
        "desirable_responses",
        "pairs_from_thumbs",
        "pairs_from_ranks",
        "best_against_worst",
        "best_responses",
        "thumbs_from_scores",
        "all_responses",
        "prompts_only",
        "verdict_prompts",
    }


def test_pairs_come_of_ranks_and_name_their_rows(picker: Picker) -> None:
    ranks, extremes = (
        next(way for way in picker.methods("scored")["dpo"]["ways"] if way["conversion"] == name)
        for name in ("pairs_from_ranks", "best_against_worst")
    )
    # Six pairs of four answers; "Tied?" has one that decides nothing, "Twice?" two, its equal texts apart.
    assert (ranks["rows"], ranks["lost"], ranks["gained"], ranks["tied"]) == (6, 6, 2, 3)
    assert ranks["lost_by"] == {"tied": 5, "alone": 1}
    assert (extremes["rows"], extremes["lost"], extremes["tied"]) == (1, 8, 2)
    made = picker.convert("scored", "pairs_from_ranks")
    assert made["name"] == "scored-pairs-from-ranks-1"
    assert made["origin"]["of"] == "scored"
    assert made["origin"]["lost"] == {"tied": 5, "alone": 1}
    first = picker.client.get(f"{BASE}/{made['name']}/samples").json()["items"][0]
    assert first["sample"]["chosen"] == "Answer 1"
    assert first["sample"]["rejected"] == "Answer 0"
    assert first["sample"]["margin"] == 1.0
    assert first["extra"] == {"from_row": 1, "from_rejected_row": 0}
    kept = picker.client.delete(f"{BASE}/scored")
    assert kept.json()["code"] == "in_use"


def test_verdicts_are_asked_in_both_orders_of_training_pairs_alone(picker: Picker) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Bread?"},
        {"role": "assistant", "content": "Rye."},
        {"role": "user", "content": "Why?"},
    ]
    odd = [{"role": "assistant", "content": "Well?"}, {"role": "user", "content": "Why?"}]
    rows = [{"prompt": prompt, "chosen": "It keeps.", "rejected": "So."} for prompt in (turns, odd)]
    picker.dataset("preferences", rows, "talks", 1e-9)
    made = picker.convert("talks", "verdict_prompts")
    assert (made["rows"], made["held_out_rows"], made["origin"]["lost"]) == (2, 0, {"no_dialogue": 1})
    first, second = (row["sample"] for row in picker.client.get(f"{BASE}/{made['name']}/samples").json()["items"])
    assert [first["reference"], second["reference"]] == ["A", "B"]
    questions = ["Be brief.\n\nBread?", "Why?"]
    system, user = fastchat_prompts.pairwise(questions, ["Rye.", "It keeps."], ["Rye.", "So."], None)
    assert [turn["content"] for turn in first["prompt"]] == [system, user]
    _, user = fastchat_prompts.pairwise(questions, ["Rye.", "So."], ["Rye.", "It keeps."], None)
    assert second["prompt"][1]["content"] == user
    # Two orders of one pair are two prompts, which would be split apart.
    way = next(way for way in picker.methods("pairs")["grpo"]["ways"] if way["conversion"] == "verdict_prompts")
    held_out = way["lost_by"]["held_out"]
    assert held_out > 0
    assert way["rows"] == way["train"] == 2 * (len(PAIRS) - way["lost"])
    assert way["held_out"] == 0


def test_a_method_that_does_not_fit_has_a_reason(picker: Picker) -> None:
    picker.dataset("unpaired", [{**row, "desirable": True} for row in THUMBS], "up", 1e-9)
    assert "all 21 training rows are desirable" in picker.methods("up")["kto"]["why_not"]
    assert picker.methods("up")["sft"]["fit"] == "after_conversion"
    picker.dataset("preferences", PAIRS, "unseen", 1 - 1e-9)
    assert {method["fit"] for method in picker.methods("unseen").values()} == {"none"}
    assert "held out" in picker.methods("unseen")["dpo"]["why_not"]
    plain = picker.methods("plain")
    assert (plain["sft"]["fit"], plain["dpo"]["fit"], plain["rwr"]["fit"]) == ("as_is", "none", "none")
    assert "score these rows" in plain["rwr"]["why_not"]
    wrong = picker.convert("plain", "pairs_from_ranks", status=422)
    assert wrong["code"] == "wrong_kind"


def test_rewards_of_a_source_are_pinned_on_the_way(picker: Picker) -> None:
    grades = "row,value\n" + "".join(f"{row},{row}\n" for row in range(len(PLAIN)))
    answer = picker.client.post(
        f"{BASE}/plain/rewards", data={"source": "people"}, files={"file": ("grades.csv", grades.encode())}
    )
    assert answer.status_code == 201, answer.text
    method = picker.methods("plain")["mle_filter"]
    (way,) = method["ways"]
    assert (method["fit"], way["conversion"], way["source"]) == ("after_conversion", "pinned_rewards", "people")
    # Above the mean are 10 of the 20 rows.
    assert way["train"] + way["held_out"] == way["left_out"] == 10
    made = picker.convert("plain", "pinned_rewards")
    assert made["kind"] == "labelled"
    assert picker.learned(made["name"], "mle_filter") == (way["train"], way["held_out"])
