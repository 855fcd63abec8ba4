"""Cleaning a dataset over HTTP: counts and examples first, then a new version that keeps what was dropped and why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from cleaning_world import BASE, LONG, ROWS, Cleaning
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.datasets.cleaning import jobs
from steerboard.platform.database import transaction


def counts(preview: Any) -> dict[str, int]:
    return {rule["rule"]: rule["rows"] for rule in preview["rules"] if rule["rows"]}


def test_counts_and_examples_of_each_rule_are_shown_before_anything_is_dropped(cleaning: Cleaning) -> None:
    cleaning.dataset()
    cleaning.exam("what is the capital of ALL")
    preview = cleaning.preview(min_margin=0.5)
    assert counts(preview) == {
        "empty_round": 1,
        "identical_sides": 1,
        "evaluation_overlap": 1,
        "small_margin": 1,
        "contradiction": 2,
        "duplicate": 1,
        "near_duplicate": 1,
    }
    assert (preview["rows"], preview["kept"], preview["checked_prompts"]) == (10, 2, 2)
    examples = {rule["rule"]: rule["examples"] for rule in preview["rules"]}
    (near,) = examples["near_duplicate"]
    assert (near["row"], near["of_row"]) == (5, 4)
    assert near["similarity"] == pytest.approx(81 / 91)
    assert "other" in near["sample"]["sample"]["chosen"]
    assert near["of_sample"]["sample"]["chosen"] == LONG
    (overlap,) = examples["evaluation_overlap"]
    assert overlap["evaluation"] == {
        "type": "evaluation",
        "name": "exam",
        "position": 0,
        "match": "exact",
        "overlap": 1.0,
    }
    assert [example["of_row"] for example in examples["contradiction"]] == [3, 2]
    assert examples["wrong_roles"] == []
    assert [dataset["name"] for dataset in cleaning.client.get(BASE).json()["items"]] == ["pairs"]


def test_each_rule_is_a_switch_and_examples_are_as_many_as_asked(cleaning: Cleaning) -> None:
    cleaning.dataset()
    cleaning.exam("nothing of that")
    preview = cleaning.preview(contradiction=False, near_duplicate=False, empty_round=False, examples=1)
    assert counts(preview) == {"identical_sides": 1, "evaluation_overlap": 1, "duplicate": 1}
    # The prompt set has `How far?`.
    (overlap,) = (rule for rule in preview["rules"] if rule["rule"] == "evaluation_overlap")
    assert (overlap["examples"][0]["row"], overlap["examples"][0]["evaluation"]["name"]) == (8, "bench")
    assert {rule["rule"]: rule["on"] for rule in preview["rules"]} == {
        "empty_round": False,
        "wrong_roles": True,
        "identical_sides": True,
        "small_margin": False,
        "evaluation_overlap": True,
        "contradiction": False,
        "duplicate": True,
        "near_duplicate": False,
    }
    assert counts(cleaning.preview(contradiction=False, evaluations=["exam"])).get("evaluation_overlap") is None
    many = cleaning.preview(examples=1)
    assert [len(rule["examples"]) for rule in many["rules"] if rule["rule"] == "contradiction"] == [1]


def test_cleaning_makes_a_new_version_that_keeps_what_was_dropped_and_why(
    cleaning: Cleaning, sessions: sessionmaker[Session]
) -> None:
    cleaning.dataset()
    before = cleaning.client.get(f"{BASE}/pairs").json()
    made = cleaning.clean()
    assert (made["name"], made["kind"], made["rows"], made["parent_id"]) == (
        "pairs-clean-1",
        "preferences",
        4,
        before["id"],
    )
    assert cleaning.ids("pairs-clean-1") == ["a", "e", "i", "j"]
    origin = made["origin"]
    assert (origin["type"], origin["of"], origin["read"]) == ("cleaning", "pairs", 10)
    assert origin["dropped"] == {
        "empty_round": 1,
        "identical_sides": 1,
        "contradiction": 2,
        "duplicate": 1,
        "near_duplicate": 1,
    }
    dropped = cleaning.client.get(f"{BASE}/pairs-clean-1/dropped").json()["items"]
    assert [(drop["row"], drop["rule"], drop["of_row"]) for drop in dropped] == [
        (1, "duplicate", 0),
        (2, "contradiction", 3),
        (3, "contradiction", 2),
        (5, "near_duplicate", 4),
        (6, "empty_round", None),
        (7, "identical_sides", None),
    ]
    assert dropped[0]["sample"]["sample"] | dropped[0]["sample"]["extra"] == ROWS[1] | {
        "prompt": [{"role": "user", "content": "Where to?"}]
    }
    assert dropped[3]["similarity"] == pytest.approx(81 / 91)
    page = cleaning.client.get(f"{BASE}/pairs-clean-1/dropped?rule=contradiction&limit=1").json()
    assert [drop["row"] for drop in page["items"]] == [2]
    page = cleaning.client.get(f"{BASE}/pairs-clean-1/dropped?rule=contradiction&cursor={page['next']}").json()
    assert [drop["row"] for drop in page["items"]] == [3]
    # The dataset that was cleaned is as it was, and stays.
    assert cleaning.client.get(f"{BASE}/pairs").json() == before
    assert cleaning.client.get(f"{BASE}/pairs/dropped").json()["items"] == []
    refused = cleaning.client.delete(f"{BASE}/pairs")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    with sessions() as session:
        assert "dataset.clean" in session.scalars(select(AuditEntry.action)).all()
    assert cleaning.client.delete(f"{BASE}/pairs-clean-1").status_code == 204
    assert cleaning.client.delete(f"{BASE}/pairs").status_code == 204


def test_a_clean_dataset_is_not_cleaned_again(cleaning: Cleaning) -> None:
    cleaning.dataset()
    made = cleaning.clean()
    again = cleaning.clean("pairs-clean-1", status=409)
    assert (again["code"], "no row" in again["detail"]) == ("nothing_to_clean", True)
    # Versions are counted, also those of versions.
    assert cleaning.clean()["name"] == "pairs-clean-2"
    later = cleaning.clean("pairs-clean-1", min_margin=0.5)
    assert (later["name"], later["rows"], later["parent_id"]) == ("pairs-clean-3", 3, made["id"])
    assert cleaning.clean(name="tidy")["name"] == "tidy"


def test_the_split_of_the_dataset_stays(cleaning: Cleaning) -> None:
    cleaning.dataset(name="all", origin={"split": "train"}, hold_out=False)
    with transaction(cleaning.sessions) as session:
        session.scalars(select(Project)).one().held_out_fraction = 0.999999
    made = cleaning.clean("all")
    assert (made["held_out_rows"], made["origin"]["split"]) == (0, "train")
    cleaning.dataset(name="some")
    with transaction(cleaning.sessions) as session:
        session.scalars(select(Project)).one().held_out_fraction = 0.999999
    made = cleaning.clean("some")
    assert made["held_out_rows"] == made["rows"]


@pytest.mark.parametrize(
    ("dataset", "rules", "status", "code"),
    [
        ("pairs", {"similarity": 0.2}, 422, "invalid_request"),
        ("pairs", {"poems": True}, 422, "invalid_request"),
        ("pairs", {"examples": 99}, 422, "invalid_request"),
        ("pairs", {"evaluations": ["unknown"]}, 404, "not_found"),
        ("nothing", {}, 404, "not_found"),
        ("answers", {}, 422, "wrong_kind"),
    ],
)
def test_wrong_requests_are_refused_with_a_code(
    cleaning: Cleaning, dataset: str, rules: dict[str, Any], status: int, code: str
) -> None:
    cleaning.dataset()
    cleaning.dataset([{"prompt": "Hi", "response": "Hello"}], "answers", kind="instructions")
    answer = cleaning.client.post(f"{BASE}/{dataset}/cleaning/preview", json=rules)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_version_with_a_bad_or_taken_name_or_without_rows_is_refused(cleaning: Cleaning) -> None:
    cleaning.dataset()
    assert cleaning.clean(status=409, name="pairs")["code"] == "name_taken"
    assert cleaning.clean(status=422, name="no name")["code"] == "invalid_name"
    cleaning.dataset([ROWS[2], ROWS[3]], "contrary")
    assert cleaning.clean("contrary", status=422)["code"] == "empty_selection"
    assert cleaning.client.get(f"{BASE}/contrary-clean-1").status_code == 404


@pytest.mark.long
def test_a_large_dataset_is_cleaned_in_a_process_of_its_own(
    cleaning: Cleaning, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaning.dataset()
    cleaning.exam("what is the capital of all")
    here, made_here = cleaning.preview(), cleaning.clean()
    monkeypatch.setattr(jobs, "ROWS_AT_ONCE", 0)
    assert cleaning.preview() == here
    key = {"Idempotency-Key": "once"}
    first = cleaning.client.post(f"{BASE}/pairs/cleaning", json={}, headers=key)
    assert first.status_code == 201, first.text
    assert (first.json()["name"], first.json()["content_hash"]) == ("pairs-clean-2", made_here["content_hash"])
    assert cleaning.client.post(f"{BASE}/pairs/cleaning", json={}, headers=key).json() == first.json()
    assert len(cleaning.client.get(f"{BASE}/pairs-clean-2/dropped").json()["items"]) == 8
    assert cleaning.clean("pairs-clean-2", status=409)["code"] == "nothing_to_clean"


@pytest.mark.long
def test_real_pairs_are_cleaned_to_a_fixed_point(cleaning: Cleaning, shared: Path) -> None:
    """2,000 pairs of hh. The import dropped equal ones; aggregate figures only, because their content is foul."""
    path = shared / "hh_rlhf" / "pairs_2000.jsonl.gz"
    with path.open("rb") as file:
        answer = cleaning.client.post(
            f"{BASE}/import",
            data={"name": "hh", "clean": "false", "bad_rows": "skip"},
            files={"file": (path.name, file)},
        )
    assert answer.status_code == 201, answer.text
    rows = answer.json()["rows"]
    preview = cleaning.preview("hh", examples=0)
    assert 0 < preview["rows"] - preview["kept"] < rows * 0.1
    made = cleaning.clean("hh")
    assert (made["rows"], made["origin"]["dropped"]) == (preview["kept"], counts(preview))
    assert cleaning.clean(made["name"], status=409)["code"] == "nothing_to_clean"


def peak_memory() -> int:
    """KiB of this process."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


@pytest.mark.long
def test_40_000_pairs_are_cleaned_in_little_memory(cleaning: Cleaning, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of hh. One row in twenty repeats another with one word changed."""
    drawn = random.Random(5)
    vocabulary = [f"w{int(drawn.paretovariate(0.7)) % 30000}" for _ in range(60000)]

    def text(least: int, most: int) -> str:
        return " ".join(drawn.choices(vocabulary, k=drawn.randint(least, most)))

    rows: list[dict[str, Any]] = []
    for _ in range(40_000):
        if rows and drawn.random() < 0.05:
            row = drawn.choice(rows)
            words = row["chosen"].split()
            words[drawn.randrange(len(words))] = "another"
            rows.append({**row, "chosen": " ".join(words)})
        else:
            prompt = [
                {"role": ("user", "assistant")[turn % 2], "content": text(8, 50)}
                for turn in range(drawn.choice((1, 3, 5)))
            ]
            rows.append({"prompt": prompt, "chosen": text(20, 90), "rejected": text(20, 90)})
    cleaning.dataset(rows)
    del rows
    monkeypatch.setattr(jobs, "ROWS_AT_ONCE", 10**9)  # here, so that its memory can be measured
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is used now
    before = peak_memory()
    preview = cleaning.preview(examples=1)
    taken = peak_memory() - before
    print(f"{taken >> 10} MB more; {counts(preview)}")
    assert 0 < taken < 120 << 10
    assert 1000 < counts(preview)["near_duplicate"] < 2000
    assert cleaning.clean()["rows"] == preview["kept"]
