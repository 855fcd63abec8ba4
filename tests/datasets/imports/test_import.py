"""The fate of every row of an imported file, and that a refused import leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken, RowsRefused
from steerboard.datasets.imports.importer import ImportOptions
from steerboard.datasets.imports.loading import import_file, import_sources
from steerboard.datasets.schemas import ImportReport
from steerboard.datasets.tables import Dataset, Reward, RewardSource, SampleRow
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.prompt_split import is_held_out, prompt_hash
from steerboard_contracts.turns import Message
from steerboard_files.errors import UnknownColumn
from steerboard_files.records import Limits, Source

Write = Callable[..., Path]
Import = Callable[..., ImportReport]


def pair(number: int, **other: Any) -> dict[str, Any]:
    return {"prompt": f"Question {number}?", "chosen": f"Good {number}", "rejected": f"Bad {number}", **other}


def stored(sessions: sessionmaker[Session], *tables: Any) -> list[int]:
    with sessions() as session:
        return [session.scalar(select(func.count()).select_from(table)) or 0 for table in tables]


def test_rows_keep_their_order_their_other_columns_and_their_split(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write, import_path: Import
) -> None:
    report = import_path(write_jsonl(pair(i, model=f"m{i}") for i in range(300)))
    assert (report.read, report.rows, report.dataset.kind) == (300, 300, "preferences")
    with sessions() as session:
        rows = session.scalars(select(SampleRow).order_by(SampleRow.row)).all()
    assert [row.sample["chosen"] for row in rows] == [f"Good {i}" for i in range(300)]
    assert [row.extra for row in rows] == [{"model": f"m{i}"} for i in range(300)]
    for row in rows:
        hashed = prompt_hash([Message(**message) for message in row.sample["prompt"]], project.split_salt)
        assert row.prompt_hash == hashed
        assert row.held_out == is_held_out(hashed, project.held_out_fraction)
    assert report.dataset.held_out_rows == sum(row.held_out for row in rows)
    assert 10 <= report.dataset.held_out_rows <= 60


def test_a_prompt_is_on_one_side_in_every_dataset_of_the_project(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    import_path(write_jsonl((pair(i) for i in range(200)), "pairs.jsonl"), "pairs")
    answers = (
        {"messages": [{"role": "user", "content": f"Question {i}?"}, {"role": "assistant", "content": "x"}]}
        for i in range(200)
    )
    import_path(write_jsonl(answers, "answers.jsonl"), "answers")
    with sessions() as session:
        sides = session.execute(
            select(SampleRow.prompt_hash, func.count(func.distinct(SampleRow.held_out)), func.count()).group_by(
                SampleRow.prompt_hash
            )
        ).all()
    assert len(sides) == 200
    assert all(distinct == 1 and count == 2 for _, distinct, count in sides)


def test_broken_json_in_row_57123_is_named_and_nothing_is_written(
    sessions: sessionmaker[Session], tmp_path: Path, import_path: Import
) -> None:
    line = json.dumps({"prompt": "Hi {}", "response": "Hello"})
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join((line.replace("{}", str(i)) if i != 57_123 else '{"prompt": "Hi", ') + "\n" for i in range(1, 60_001))
    )
    with pytest.raises(RowsRefused, match="line 57123 is not valid JSON") as refused:
        import_path(path)
    assert refused.value.code == "broken_json"
    assert refused.value.errors[0].location == "line 57123"
    assert "skip" in (refused.value.hint or "")
    assert stored(sessions, Dataset, SampleRow, Event) == [0, 0, 0]


def test_bad_rows_are_refused_with_all_of_them_counted_by_reason(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    rows: list[Any] = [{"prompt": f"Hi {i}", "response": "Hello"} for i in range(10)]
    rows[2]["response"] = "  "
    rows[5] = {"prompt": "Hi"}
    rows[7]["response"] = ""
    rows[8] = "not json"
    with pytest.raises(RowsRefused) as refused:
        import_path(write_jsonl(rows))
    assert refused.value.code == "bad_row"
    assert [place.location for place in refused.value.errors] == ["line 3", "line 6", "line 8", "line 9"]
    assert refused.value.extra["bad_counts"]["response: is empty"] == 2
    assert stored(sessions, Dataset, SampleRow) == [0, 0]


def test_bad_rows_can_be_skipped_and_are_still_reported(write_jsonl: Write, import_path: Import) -> None:
    rows: list[Any] = [{"prompt": f"Hi {i}", "response": "Hello" if i % 2 else None} for i in range(2400)]
    report = import_path(write_jsonl(rows), bad_rows="skip")
    assert (report.read, report.rows, report.bad_rows) == (2400, 1200, 1200)
    assert report.bad_counts == {"response: is null": 1200}
    assert len(report.bad) == 1000
    assert [bad.line for bad in report.bad[:3]] == [1, 3, 5]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_reward_that_is_no_finite_number_is_refused(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import, value: str
) -> None:
    good = [f'{{"prompt": "Hi {i}", "response": "a", "reward": {i}}}' for i in range(3)]
    path = write_jsonl([*good, f'{{"prompt": "Hi", "response": "a", "reward": {value}}}'])
    with pytest.raises(RowsRefused, match="line 4") as refused:
        import_path(path)
    assert refused.value.code == "non_finite_reward"
    assert stored(sessions, Dataset, SampleRow, Reward, RewardSource) == [0, 0, 0, 0]
    assert import_path(path, bad_rows="skip").rows == 3


@pytest.mark.parametrize("rewards", [[1.0], [2.0, 2.0, 2.0]])
def test_rewards_that_cannot_be_normalised_are_refused(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import, rewards: list[float]
) -> None:
    rows = [{"prompt": f"Hi {i}", "response": "a", "reward": reward} for i, reward in enumerate(rewards)]
    with pytest.raises(BadInput) as refused:
        import_path(write_jsonl(rows))
    assert refused.value.code == "degenerate_rewards"
    assert stored(sessions, Dataset, SampleRow, Reward, RewardSource) == [0, 0, 0, 0]


def test_labelled_rows_are_normalised_over_all_of_them(write_jsonl: Write, import_path: Import) -> None:
    rows = [{"prompt": f"Hi {i}", "response": "a", "gpt4_score": i} for i in range(1, 6)]
    dataset = import_path(write_jsonl(rows), kind="labelled", mapping={"reward": "gpt4_score"}).dataset
    assert dataset.normaliser is not None
    assert dataset.rewards is not None
    assert (dataset.normaliser.mean, dataset.normaliser.n) == (3.0, 5)
    assert dataset.normaliser.sd == pytest.approx(2**0.5, rel=1e-15)
    assert (dataset.rewards.p20, dataset.rewards.p50, dataset.rewards.p80) == pytest.approx((1.8, 3.0, 4.2))


def test_cleaning_counts_every_rule_and_every_row_is_accounted_for(write_jsonl: Write, import_path: Import) -> None:
    start = "\n\nHuman: Hi\n\nAssistant: "
    rows = [
        *({"chosen": f"{start}good {i}", "rejected": f"{start}bad {i}", "margin": i} for i in range(4)),
        {"chosen": f"{start}good 3", "rejected": f"{start}bad 3", "margin": 7},
        {"chosen": f"{start}same", "rejected": f"{start}same", "margin": 9},
        {"chosen": f"{start}fine", "rejected": start, "margin": 9},
        {
            "chosen": f"{start}\n\nHuman: well?\n\nAssistant: yes",
            "rejected": f"{start}\n\nHuman: well?\n\nAssistant: no",
            "margin": 9,
        },
        {
            "chosen": f"{start}a\n\nHuman: b\n\nAssistant: c",
            "rejected": f"{start}x\n\nHuman: b\n\nAssistant: c",
            "margin": 9,
        },
    ]
    report = import_path(write_jsonl(rows), min_margin=1.5)
    assert report.form == "transcripts"
    assert report.cleaned == {
        "small_margin": 2,
        "duplicate": 1,
        "identical_sides": 1,
        "empty_round": 2,
        "diverging": 1,
    }
    assert report.read == report.rows + sum(report.cleaned.values()) + report.bad_rows == 9


def test_without_cleaning_only_invalid_rows_are_refused(write_jsonl: Write, import_path: Import) -> None:
    path = write_jsonl([pair(1), pair(1), pair(2, rejected="Good 2")])
    assert import_path(path, "all", clean=False).rows == 3
    assert import_path(path, "clean").cleaned == {"duplicate": 1, "identical_sides": 1}
    with pytest.raises(RowsRefused, match="chosen: is empty"):
        import_path(write_jsonl([pair(1, chosen="")]), "empty", clean=False)


def test_duplicates_of_other_kinds_are_dropped_too(write_jsonl: Write, import_path: Import) -> None:
    report = import_path(write_jsonl([{"prompt": "Hi"}, {"prompt": "Ho"}, {"prompt": "Hi", "id": 3}]))
    assert (report.rows, report.cleaned) == (2, {"duplicate": 1})


def test_a_smallest_margin_needs_margins(write_jsonl: Write, import_path: Import) -> None:
    with pytest.raises(UnknownColumn, match="margin"):
        import_path(write_jsonl([pair(1)]), min_margin=0.5)


def test_a_dataset_never_comes_out_empty(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    with pytest.raises(EmptySelection):
        import_path(write_jsonl([pair(1, chosen="x", rejected="x")]))
    assert stored(sessions, Dataset, SampleRow) == [0, 0]


def test_the_reason_why_no_row_is_left_names_each_rule_and_fault(write_jsonl: Write, import_path: Import) -> None:
    sides = [[{"role": "user", "content": asked}, {"role": "assistant", "content": "x"}] for asked in ("Hi", "Ho")]
    rows = [{"chosen": sides[0], "rejected": sides[1]}] * 4 + [{"chosen": sides[0], "rejected": sides[0]}]
    with pytest.raises(EmptySelection) as refused:
        import_path(write_jsonl(rows))
    assert refused.value.detail == (
        "none of 5 rows is left. 4 rows removed: chosen and rejected have different prompts; "
        "1 row removed: chosen and rejected are the same text"
    )
    bad = [{"prompt": "Hi", "response": 3}] * 2
    with pytest.raises(EmptySelection, match=r"none of 2 rows is left. 2 bad rows: response: is not a text \(2\)"):
        import_path(write_jsonl(bad), bad_rows="skip")


def test_nul_characters_are_refused_in_fields_and_beside_them(write_jsonl: Write, import_path: Import) -> None:
    with pytest.raises(RowsRefused, match="response: contains a NUL"):
        import_path(write_jsonl([{"prompt": "Hi", "response": "a\x00b"}]))
    with pytest.raises(RowsRefused, match="NUL character"):
        import_path(write_jsonl([{"prompt": "Hi", "response": "a", "model": {"deep": ["\x00"]}}]))
    # The six characters backslash, u, 0, 0, 0, 0 are just text.
    assert import_path(write_jsonl([{"prompt": "Hi", "response": "a", "model": "\\u0000"}])).rows == 1


def test_a_line_beyond_the_bound_is_one_bad_row(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write
) -> None:
    path = write_jsonl([pair(1), pair(2, chosen="x" * 50_000), pair(3)])
    sources = [Source("rows.jsonl", lambda: path.open("rb"))]
    strict = ImportOptions(limits=Limits(line=10_000))
    with pytest.raises(RowsRefused, match="line 2") as refused, transaction(sessions) as session:
        import_sources(session, project, sources=sources, name="rows", options=strict)
    assert refused.value.code == "line_too_long"
    with transaction(sessions) as session:
        lenient = ImportOptions(limits=Limits(line=10_000), bad_rows="skip")
        assert import_sources(session, project, sources=sources, name="rows", options=lenient).rows == 2


def test_several_files_are_one_dataset_and_faults_name_their_file(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write
) -> None:
    first, second = write_jsonl([pair(1)], "a.jsonl"), write_jsonl([pair(2), {"prompt": "x"}], "b.jsonl")
    sources = [Source(path.name, lambda path=path: path.open("rb")) for path in (first, second)]  # type: ignore[misc]
    with pytest.raises(RowsRefused, match=r"line 2 of b\.jsonl"), transaction(sessions) as session:
        import_sources(session, project, sources=sources, name="rows", options=ImportOptions())
    with transaction(sessions) as session:
        options = ImportOptions(bad_rows="skip")
        assert import_sources(session, project, sources=sources, name="rows", options=options).rows == 2


def test_a_failed_import_leaves_the_callers_transaction_usable(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write
) -> None:
    bad, good = write_jsonl([pair(1), "{"], "bad.jsonl"), write_jsonl([pair(1)], "good.jsonl")
    with transaction(sessions) as session:
        with pytest.raises(RowsRefused):
            import_file(session, project, path=bad, name="rows")
        import_file(session, project, path=good, name="rows")
    assert stored(sessions, Dataset, SampleRow) == [1, 1]


def test_a_name_is_used_once_and_must_be_a_name(write_jsonl: Write, import_path: Import) -> None:
    path = write_jsonl([pair(1)])
    import_path(path)
    with pytest.raises(NameTaken):
        import_path(path)
    for name in ("", "../up", "a b", ".hidden", "x" * 129):
        with pytest.raises(BadInput) as refused:
            import_path(path, name)
        assert refused.value.code == "invalid_name"


def test_the_hh_pairs_are_split_into_turns(shared: Path, import_path: Import) -> None:
    report = import_path(shared / "hh_rlhf" / "pairs_2000.jsonl.gz", kind="preferences")
    assert report.form == "transcripts"
    assert report.read == 2000
    assert report.bad_rows == 0
    assert report.rows == 2000 - sum(report.cleaned.values()) >= 1950
    assert set(report.cleaned) <= {"empty_round", "diverging", "identical_sides", "duplicate"}


def test_graded_answers_name_the_lines_without_a_grade(shared: Path, import_path: Import) -> None:
    path, mapping = shared / "graded" / "arena_bench_graded.jsonl.gz", {"reward": "gpt4_score"}
    with pytest.raises(RowsRefused, match="18 of 1,500") as refused:
        import_path(path, kind="labelled", mapping=mapping)
    assert len(refused.value.errors) == 18
    report = import_path(path, kind="labelled", mapping=mapping, bad_rows="skip")
    assert (report.rows, report.bad_counts) == (1482, {"reward: is null": 18})


def test_dialogues_of_messages_are_instructions(shared: Path, import_path: Import) -> None:
    report = import_path(shared / "graded" / "mt_bench_dialogues.jsonl.gz", bad_rows="skip")
    assert report.dataset.kind == "instructions"
    assert report.rows + report.bad_rows + sum(report.cleaned.values()) == 2480
    assert report.rows > 2400
