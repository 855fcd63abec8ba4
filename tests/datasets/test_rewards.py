"""Rewards cover every row exactly once; a labelled dataset pins them and never changes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.errors import InUse, RewardsMismatch
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.queries import reward_sources
from steerboard.datasets.tables import Dataset, Reward
from steerboard.platform.database import transaction
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.prompts import Normaliser

Write = Callable[..., Path]
VALUES = [0.5, -1.25, 3.0, 0.1]


@pytest.fixture
def answers(sessions: sessionmaker[Session], project: Project, write_jsonl: Write) -> Dataset:
    rows = [{"prompt": f"Hi {i}", "response": f"a{i}", "source": "generated"} for i in range(len(VALUES))]
    with transaction(sessions) as session:
        return service.register_rows(
            session, project, name="answers", kind="instructions", path=write_jsonl(rows, "answers.jsonl"), run_id=None
        )


def graded(values: list[Any]) -> list[dict[str, Any]]:
    return [{"row": row, "value": value} for row, value in enumerate(values)]


def test_labelling_pins_rewards_with_their_normaliser(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write, tmp_path: Path
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        # In any order: shards end when they end.
        path = write_jsonl(graded(VALUES)[::-1], "rewards.jsonl")
        assert service.record_rewards(session, answers, source, path) == 4
        labelled = service.pin_labelled(session, project, name="labelled", dataset=answers, source=source, run_id=None)
    mean = math.fsum(VALUES) / 4
    assert labelled.normaliser is not None
    assert labelled.normaliser["mean"] == mean
    assert labelled.normaliser["sd"] == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in VALUES) / 4), rel=1e-15)
    assert (labelled.rows, labelled.held_out_rows, labelled.kind) == (4, answers.held_out_rows, "labelled")
    with sessions() as session:
        given = service.export_for_stage(session, session.get_one(Dataset, labelled.id), tmp_path / "data.jsonl")
    lines = [json.loads(line) for line in Path(given.path).read_text().splitlines()]
    assert [line["reward"] for line in lines] == VALUES
    assert [line["response"] for line in lines] == ["a0", "a1", "a2", "a3"]
    assert {line["source"] for line in lines} == {"generated"}


def test_a_pinned_dataset_reimported_from_its_export_has_its_hash(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write, tmp_path: Path
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        service.record_rewards(session, answers, source, write_jsonl(graded(VALUES)))
        labelled = service.pin_labelled(session, project, name="l", dataset=answers, source=source, run_id=None)
        for form in ("jsonl", "parquet"):
            with (tmp_path / form).open("wb") as file:
                service.write_export(session, labelled, form, file)  # type: ignore[arg-type]
            again = import_file(session, project, path=tmp_path / form, name=f"again-{form}")
            assert again.dataset.content_hash == labelled.content_hash
            assert again.dataset.kind == "labelled"


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (graded(VALUES)[:3], "rewards_mismatch"),
        ([*graded(VALUES), {"row": 2, "value": 1.0}], "rewards_mismatch"),
        ([*graded(VALUES)[:3], {"row": 4, "value": 1.0}], "rewards_mismatch"),
        ([*graded(VALUES)[:3], {"row": -1, "value": 1.0}], "rewards_mismatch"),
        ([*graded(VALUES)[:3], {"row": "3", "value": 1.0}], "rewards_mismatch"),
        ([*graded(VALUES)[:3], {"row": 3, "value": float("nan")}], "non_finite_reward"),
        ([*graded(VALUES)[:3], {"row": 3, "value": None}], "non_finite_reward"),
        ([*graded(VALUES)[:3], {"row": 3, "value": 1e308}], "reward_too_large"),
        ([*graded(VALUES)[:3], '{"row": 3, "value": ' + "9" * 400 + "}"], "reward_too_large"),
        ([*graded(VALUES)[:3], {"value": 1.0}], "unknown_column"),
        ([*graded(VALUES)[:3], '{"row": 3, "value"'], "broken_json"),
        ([], "empty_file"),
    ],
)
def test_rewards_that_do_not_cover_every_row_once_are_refused(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write, rows: list[Any], code: str
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        with pytest.raises(BadInput) as refused:
            service.record_rewards(session, answers, source, write_jsonl(rows))
        assert refused.value.code == code
        assert session.scalar(select(func.count()).select_from(Reward)) == 0


def test_pinned_rewards_stand_when_the_same_grades_come_again(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        service.record_rewards(session, answers, source, write_jsonl(graded([9.0, 9, 9, 9])))
        service.record_rewards(session, answers, source, write_jsonl(graded(VALUES)))  # nothing pins them yet
        service.pin_labelled(session, project, name="l", dataset=answers, source=source, run_id=None)
        service.record_rewards(session, answers, source, write_jsonl(graded([v + 1e-5 for v in VALUES])))
        assert list(session.scalars(select(Reward.value).order_by(Reward.row))) == VALUES
        with pytest.raises(RewardsMismatch, match="row 2"):
            service.record_rewards(session, answers, source, write_jsonl(graded([*VALUES[:2], 4.0, 0.1])))


def test_unfinished_grades_cannot_be_pinned(
    sessions: sessionmaker[Session], project: Project, answers: Dataset
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        with pytest.raises(RewardsMismatch, match="0 of 4"):
            service.pin_labelled(session, project, name="l", dataset=answers, source=source, run_id=None)


def test_only_single_answers_can_be_labelled(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write
) -> None:
    with transaction(sessions) as session:
        prompts = service.register_rows(
            session, project, name="p", kind="prompts", path=write_jsonl([{"prompt": "Hi"}]), run_id=None
        )
        source = service.imported_source(session, project, "judge")
        with pytest.raises(BadInput) as refused:
            service.pin_labelled(session, project, name="l", dataset=prompts, source=source, run_id=None)
    assert refused.value.code == "wrong_kind"


def test_a_weighted_source_is_the_sum_of_its_parts(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write
) -> None:
    other = [1.0, 2.0, 3.0, 4.0]
    with transaction(sessions) as session:
        for name, values in (("a", VALUES), ("b", other)):
            source = service.imported_source(session, project, name)
            service.record_rewards(session, answers, source, write_jsonl(graded(values)))
        service.add_weighted(session, project, answers, "both", {"a": 0.25, "b": -2.0}, scale="raw")
        sources = {s.name: s for s in reward_sources(session, answers)}
        both = service.get_source(session, project, "both")
        rewards = list(
            session.scalars(select(Reward.value).where(Reward.reward_source_id == both.id).order_by(Reward.row))
        )
    assert rewards == [0.25 * a - 2 * b for a, b in zip(VALUES, other, strict=True)]
    assert sources["both"].kind == "weighted"
    assert sources["b"].figures.p50 == 2.5


def test_a_weighted_source_adds_z_scores_and_its_labelled_dataset_keeps_how(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write
) -> None:
    other = [100.0, 200.0, 300.0, 400.0]
    with transaction(sessions) as session:
        for name, values in (("a", VALUES), ("b", other)):
            source = service.imported_source(session, project, name)
            service.record_rewards(session, answers, source, write_jsonl(graded(values)))
        both = service.add_weighted(session, project, answers, "both", {"a": 1.0, "b": -2.0})
        labelled = service.pin_labelled(session, project, name="l", dataset=answers, source=both, run_id=None)
        rewards = session.scalars(select(Reward.value).where(Reward.reward_source_id == both.id).order_by(Reward.row))
        by = [Normaliser.fit(values, name) for name, values in (("a", VALUES), ("b", other))]
        z = [[source.z(value) for value in values] for source, values in zip(by, (VALUES, other), strict=True)]
        assert rewards.all() == pytest.approx([a - 2 * b for a, b in zip(*z, strict=True)])
        normaliser = Normaliser.model_validate(labelled.normaliser)
        assert normaliser.parts == [by[0].part(1.0), by[1].part(-2.0)]
        assert (normaliser.mean, normaliser.reward_source) == (pytest.approx(0), "both")
        constant = service.imported_source(session, project, "constant")
        service.record_rewards(session, answers, constant, write_jsonl(graded([1.0] * 4)))
        with pytest.raises(BadInput) as refused:
            service.add_weighted(session, project, answers, "none", {"a": 1.0, "constant": 1.0})
        assert refused.value.code == "degenerate_rewards"


def test_a_weighted_source_needs_complete_parts(
    sessions: sessionmaker[Session], project: Project, answers: Dataset
) -> None:
    with transaction(sessions) as session:
        service.imported_source(session, project, "a")
        with pytest.raises(RewardsMismatch):
            service.add_weighted(session, project, answers, "both", {"a": 1.0})
        with pytest.raises(SteerboardError) as unknown:
            service.add_weighted(session, project, answers, "both", {"nobody": 1.0})
        assert unknown.value.code == "not_found"


def test_a_dataset_is_deleted_with_its_rewards_but_not_under_a_labelled_one(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write
) -> None:
    with transaction(sessions) as session:
        source = service.imported_source(session, project, "judge")
        service.record_rewards(session, answers, source, write_jsonl(graded(VALUES)))
        service.pin_labelled(session, project, name="l", dataset=answers, source=source, run_id=None)
    with transaction(sessions) as session:
        with pytest.raises(InUse, match="'l'"):
            service.delete_dataset(session, service.get_dataset(session, project, "answers"))
        service.delete_dataset(session, service.get_dataset(session, project, "l"))
        assert session.scalar(select(func.count()).select_from(Reward)) == 4
        service.delete_dataset(session, service.get_dataset(session, project, "answers"))
        assert session.scalar(select(func.count()).select_from(Reward)) == 0


def test_weights_cannot_make_rewards_too_large(
    sessions: sessionmaker[Session], project: Project, answers: Dataset, write_jsonl: Write
) -> None:
    with transaction(sessions) as session:
        service.record_rewards(
            session, answers, service.imported_source(session, project, "judge"), write_jsonl(graded(VALUES))
        )
        with pytest.raises(BadInput) as refused:
            service.add_weighted(session, project, answers, "sum", {"judge": 1e200}, scale="raw")
        assert refused.value.code == "reward_too_large"
