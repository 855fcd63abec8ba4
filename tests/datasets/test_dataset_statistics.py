"""Stored figures equal those of the rows, for new and for old datasets, and follow the rewards."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.background import prepare_all
from steerboard.datasets.derived_tables import DatasetStatistics, RewardStatistics, SearchSegment, SearchWord
from steerboard.datasets.queries import reward_sources
from steerboard.datasets.rewards.histograms import histogram
from steerboard.datasets.statistics.presenters import statistics_out
from steerboard.datasets.statistics.reward_arrays import binned, moments, ranked
from steerboard.datasets.statistics.schemas import DatasetStatisticsOut
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard_contracts.prompts import Normaliser

Write = Callable[..., Path]
RANDOM = random.Random(3)


def make_rows(count: int) -> list[dict[str, Any]]:
    rows = []
    for i in range(count):
        turns = [{"role": "user", "content": f"ask {i // 3} " + "x" * RANDOM.randint(0, 60)}]
        if i % 4 == 0:
            turns = [*turns, {"role": "assistant", "content": "well"}, {"role": "user", "content": "and?"}]
        rows.append({"prompt": turns, "response": "y" * RANDOM.randint(1, 90), "source": "abc"[i % 3]})
    return [*rows, *rows[:20]]


ROWS = make_rows(980)
VALUES = [round(RANDOM.gauss(0.5, 2.0), 2) for _ in ROWS]  # with ties


class World:
    def __init__(self, sessions: sessionmaker[Session], project: Project, write: Write) -> None:
        self.sessions, self.project, self.write = sessions, project, write
        with transaction(sessions) as session:
            self.answers = service.register_rows(
                session, project, name="answers", kind="instructions", path=write(ROWS), run_id=None
            )

    def grade(self, values: list[float], source: str = "judge") -> None:
        with transaction(self.sessions) as session:
            graded = [{"row": row, "value": value} for row, value in enumerate(values)]
            row = service.imported_source(session, self.project, source)
            service.record_rewards(session, self.answers, row, self.write(graded, "rewards.jsonl"))

    def pin(self, name: str = "labelled", source: str = "judge") -> Dataset:
        with transaction(self.sessions) as session:
            by = service.get_source(session, self.project, source)
            return service.pin_labelled(session, self.project, name=name, dataset=self.answers, source=by, run_id=None)

    def shown(self, dataset: Dataset) -> DatasetStatisticsOut:
        with transaction(self.sessions) as session:
            return statistics_out(session, session.get_one(Dataset, dataset.id))


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project, write_jsonl: Write) -> World:
    return World(sessions, project, write_jsonl)


def characters(field: str) -> list[int]:
    if field == "prompt":
        return [sum(len(turn["content"]) for turn in row["prompt"]) for row in ROWS]
    return [len(row[field]) for row in ROWS]


def test_figures_are_those_of_the_rows(world: World) -> None:
    shown = world.shown(world.answers)
    assert shown.rows == len(ROWS)
    assert shown.turns.max == 3
    assert shown.turns.mean == pytest.approx(statistics.fmean(len(row["prompt"]) for row in ROWS), abs=0.01)
    assert [column.field for column in shown.lengths] == ["prompt", "response"]
    for column in shown.lengths:
        lengths = sorted(characters(column.field))
        assert (column.max, column.p50) == (lengths[-1], lengths[len(lengths) // 2])
        assert column.mean == pytest.approx(statistics.fmean(lengths), abs=0.1)
        for place, part in enumerate(column.bins):
            last = place == len(column.bins) - 1
            assert part.count == sum(part.low <= n < part.high or (last and n == part.high) for n in lengths)
    assert {source.source: source.rows for source in shown.sources} == Counter(row["source"] for row in ROWS)
    prompts = Counter(str(row["prompt"]) for row in ROWS)
    assert shown.duplicates.distinct_prompts == len(prompts)
    assert shown.duplicates.repeated_prompts == sum(count > 1 for count in prompts.values())
    assert shown.duplicates.repeated_rows == len(ROWS) - len({str(row) for row in ROWS})
    assert (shown.rewards, shown.reward_by_length) == ([], None)


def test_a_cleaned_import_has_no_repeated_rows(
    import_path: Callable[..., Any], write_jsonl: Write, world: World
) -> None:
    report = import_path(write_jsonl(ROWS, "again.jsonl"), "cleaned")
    assert report.cleaned["duplicate"] >= 20
    with world.sessions() as session:
        dataset = session.get_one(Dataset, report.dataset.id)
    assert world.shown(dataset).duplicates.repeated_rows == 0


def test_a_labelled_dataset_has_its_own_rewards_raw_and_in_z(world: World) -> None:
    world.grade([-value for value in VALUES], "other")
    world.grade(VALUES)
    shown = world.shown(world.pin())
    assert [reward.source for reward in shown.rewards] == ["judge", "other"]
    pinned = shown.rewards[0]
    fitted = Normaliser.fit(VALUES, "judge")
    assert pinned.figures.p50 == pytest.approx(statistics.median(VALUES))
    assert (pinned.normalised.mean, pinned.normalised.sd) == (fitted.mean, fitted.sd)
    assert sum(part.count for part in pinned.bins) == len(VALUES)
    assert [part.count for part in pinned.normalised.bins] == [part.count for part in pinned.bins]
    assert pinned.normalised.bins[0].low == pytest.approx(fitted.z(min(VALUES)))
    assert pinned.normalised.bins[-1].high == pytest.approx(fitted.z(max(VALUES)))
    assert shown.reward_by_length is not None
    assert shown.reward_by_length.source == "judge"
    lengths = characters("response")
    for place, part in enumerate(shown.reward_by_length.bins):
        last = place == len(shown.reward_by_length.bins) - 1
        inside = [
            value
            for value, length in zip(VALUES, lengths, strict=True)
            if part.low <= length < part.high or (last and length == part.high)
        ]
        assert part.n == len(inside)
        assert part.mean == pytest.approx(statistics.fmean(inside))
        assert (part.p20, part.p80) == pytest.approx(tuple(np.quantile(inside, (0.2, 0.8))))


def test_grades_that_come_again_replace_the_figures_of_the_earlier_ones(world: World) -> None:
    world.grade([0.0] * len(VALUES))
    with transaction(world.sessions) as session:
        source = service.get_source(session, world.project, "judge")
        assert histogram(session, world.answers, source, 7).bins[0].count == len(VALUES)
    world.grade(VALUES)
    with transaction(world.sessions) as session:
        shown = histogram(session, world.answers, source, 7)
        assert (shown.low, shown.high) == (min(VALUES), max(VALUES))
        assert sum(part.count for part in shown.bins) == len(VALUES)


def test_old_datasets_get_the_same_figures_when_asked_or_in_the_background(world: World) -> None:
    world.grade(VALUES)
    with transaction(world.sessions) as session:
        service.add_weighted(session, world.project, world.answers, "double", {"judge": 2.0}, scale="raw")
    labelled = world.pin()
    before = world.shown(labelled)
    for in_background in (False, True):
        with transaction(world.sessions) as session:
            session.execute(delete(DatasetStatistics))
            session.execute(delete(RewardStatistics))
        if in_background:
            prepare_all(world.sessions, Event())
            with world.sessions() as session:
                assert session.scalar(select(func.count()).select_from(RewardStatistics)) == 2
        after = world.shown(labelled)
        assert after.model_copy(update={"search": before.search}) == before
    with transaction(world.sessions) as session:
        figures = {source.name: source.figures for source in reward_sources(session, labelled)}
    assert figures["double"].high == 2 * max(VALUES)


def test_deleting_a_dataset_deletes_what_was_worked_out(world: World) -> None:
    world.grade(VALUES)
    prepare_all(world.sessions, Event())
    with transaction(world.sessions) as session:
        service.delete_dataset(session, session.get_one(Dataset, world.answers.id))
    with world.sessions() as session:
        for table in (DatasetStatistics, RewardStatistics, SearchSegment, SearchWord):
            assert session.scalar(select(func.count()).select_from(table)) == 0


@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=60), st.integers(1, 50))
def test_every_value_is_in_the_bin_whose_edges_hold_it(values: list[float], bins: int) -> None:
    ordered = ranked(np.array(values)).ordered
    assert ordered.tolist() == sorted(values)
    made = binned(ordered, min(values), max(values), bins)
    for place, bin_ in enumerate(made):
        last = place == len(made) - 1
        assert bin_.count == sum(bin_.low <= v < bin_.high or (last and v >= bin_.low) for v in values)
    mean, sd = moments(np.array(values))
    assert mean == pytest.approx(statistics.fmean(values))
    assert sd == pytest.approx(statistics.pstdev(values), rel=1e-9, abs=1e-9 * max(map(abs, values)))
