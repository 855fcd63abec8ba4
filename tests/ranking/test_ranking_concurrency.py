"""Many annotators at once, and any order of doing things, on the real database."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ranking_world import RankingWorld
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Membership, User
from steerboard.evaluation.ranking import drafts, queue, submissions
from steerboard.evaluation.ranking.errors import LockLost, TaskEnded
from steerboard.evaluation.ranking.schemas import Draft, Skip, Submit
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.platform.database import transaction

RANKS = [1, 2, 3]


def people(world: RankingWorld, names: str) -> list[uuid.UUID]:
    with transaction(world.sessions) as session:
        users = [User(name=name) for name in names]
        session.add_all(users)
        session.flush()
        session.add_all(Membership(project_id=world.project.id, user_id=user.id, role="annotator") for user in users)
        return [user.id for user in users]


def next_tasks(world: RankingWorld, campaign: Any, user: uuid.UUID, ahead: int = 1) -> Any:
    with transaction(world.sessions) as session:
        return queue.next_tasks(session, world.project, uuid.UUID(campaign["id"]), user, ahead)


def submit(world: RankingWorld, user: uuid.UUID, task: uuid.UUID, key: str) -> bool:
    """Whether it counts; like the endpoint, commits also what came too late."""
    given_ = Submit(ranks=RANKS, seconds=1, submission=key)
    with transaction(world.sessions) as session:
        try:
            return submissions.submit(session, world.project, user, task, given_).new
        except (LockLost, TaskEnded):
            return False


def test_annotators_at_once_never_hold_an_item_beyond_the_overlap(world: RankingWorld) -> None:
    world.evaluation(prompts=30)
    campaign = world.campaign(overlap=2)
    users = people(world, "abcdefgh")
    barrier = threading.Barrier(len(users))
    too_many: list[int] = []

    def work(user: uuid.UUID) -> int:
        done, idle = 0, 0
        barrier.wait()
        while idle < 20:
            given_ = next_tasks(world, campaign, user, ahead=2)
            too_many.extend(held for held in world.holders().values() if held > 2)
            idle = 0 if given_.items else idle + 1
            for task in given_.items:
                key = f"{task.id}-1"
                with ThreadPoolExecutor(2) as twice:  # a retry that crosses the first try
                    done += sum(twice.map(lambda _, t=task, k=key: submit(world, user, t.id, k), range(2)))
            if given_.state == "done":
                break
        return done

    with ThreadPoolExecutor(len(users)) as pool:
        done = sum(pool.map(work, users))
    assert too_many == []
    assert done == 60
    counts = Counter(task.item_id for task in world.tasks() if task.state == "submitted")
    assert set(counts.values()) == {2}
    assert len({(task.item_id, task.user_id) for task in world.tasks()}) == len(world.tasks())
    with world.sessions() as session:
        assert session.scalars(select(RankingItem.rankings)).all() == [2] * 30


def test_of_a_late_ranking_and_the_next_annotator_only_one_gets_the_place(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    ann, bob = people(world, "ab")
    for number in range(12):
        campaign = world.campaign(name=f"race-{number}")
        (task,) = next_tasks(world, campaign, ann).items
        world.expire()
        barrier = threading.Barrier(2)

        def late(task_id: uuid.UUID = task.id, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            return submit(world, ann, task_id, "late-submission")

        def other(campaign: Any = campaign, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            return bool(next_tasks(world, campaign, bob).items)

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(late), pool.submit(other)
            counted, given_ = first.result(), second.result()
        assert not (counted and given_)
        assert counted or given_


OFTEN, SOMETIMES = ("next", "expire", "submit"), ("again", "skip", "undo", "draft")
ACTIONS = OFTEN * 4 + SOMETIMES * 2 + ("gold", "raise")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 7)), min_size=10, max_size=40)


class Model:
    """What must hold after any sequence of steps; `counted`: tasks whose submission was accepted and not undone."""

    def __init__(self, world: RankingWorld, users: list[uuid.UUID], campaign: Any) -> None:
        self.world, self.users, self.campaign = world, users, campaign
        self.overlap = 1
        self.counted: dict[uuid.UUID, str] = {}
        self.ended: set[uuid.UUID] = set()
        self.keys = 0

    def step(self, action: str, who: int, which: int) -> None:
        user = self.users[who]
        if action == "next":
            given_ = next_tasks(self.world, self.campaign, user, 1 + which % 3)
            assert not {task.id for task in given_.items} & self.ended, "an item came twice"
            return
        if action in ("gold", "raise", "expire"):
            getattr(self, f"_{action}")(which)
            return
        mine = [task for task in self.tasks() if task.user_id == user]
        if not mine:
            return
        task = mine[which % len(mine)]
        getattr(self, f"_{action}")(task, user)

    def _submit(self, task: RankingTask, user: uuid.UUID) -> None:
        self.keys += 1
        key = f"submission-{self.keys}"
        if submit(self.world, user, task.id, key):
            self.counted[task.id] = key
            self.ended.add(task.id)

    def _again(self, task: RankingTask, user: uuid.UUID) -> None:
        if task.submission is not None:
            assert not submit(self.world, user, task.id, task.submission)

    def _skip(self, task: RankingTask, user: uuid.UUID) -> None:
        self.keys += 1
        given_ = Skip(reason="x", seconds=1, submission=f"submission-{self.keys}")
        if self._try(submissions.skip, user, task.id, given_):
            self.ended.add(task.id)

    def _undo(self, task: RankingTask, user: uuid.UUID) -> None:
        if self._try(submissions.undo, user, task.id):
            self.counted.pop(task.id, None)
            self.ended.discard(task.id)

    def _draft(self, task: RankingTask, user: uuid.UUID) -> None:
        self._try(drafts.save, user, task.id, Draft(ranks={"A": 1}))

    def _try(self, call: Any, user: uuid.UUID, *given_: Any) -> bool:
        try:
            with transaction(self.world.sessions) as session:
                call(session, self.world.project, user, *given_)
        except (LockLost, TaskEnded):
            return False
        return True

    def _expire(self, which: int) -> None:
        held = [task for task in self.tasks() if task.state == "locked"]
        if held:
            self.world.expire(str(held[which % len(held)].id))

    def _gold(self, which: int) -> None:
        with transaction(self.world.sessions) as session:
            items = select(RankingItem).where(RankingItem.campaign_id == uuid.UUID(self.campaign["id"]))
            item = session.scalars(items.order_by(RankingItem.position)).all()[which % 5]
            entrants = session.get_one(Campaign, item.campaign_id).entrants
            item.gold = {entrant: rank for rank, entrant in enumerate(entrants, 1)}

    def _raise(self, which: int) -> None:
        self.overlap = max(self.overlap, 1 + which % 3)
        self.world.owner.patch(self.world.path(self.campaign), json={"overlap": self.overlap})

    def tasks(self) -> list[RankingTask]:
        return [task for task in self.world.tasks() if str(task.campaign_id) == self.campaign["id"]]

    def check(self) -> None:
        tasks = self.tasks()
        submitted = {task.id: task.submission for task in tasks if task.state == "submitted"}
        assert submitted == self.counted, "a ranking was lost or doubled"
        with self.world.sessions() as session:
            items = session.scalars(
                select(RankingItem).where(RankingItem.campaign_id == uuid.UUID(self.campaign["id"]))
            ).all()
            held = _held(session, self.campaign)
        ranked = Counter(task.item_id for task in tasks if task.state == "submitted")
        for item in items:
            assert item.rankings == ranked[item.id]
            assert item.gold is not None or ranked[item.id] + held[item.id] <= self.overlap
        assert all(task.locked_until is None for task in tasks if task.state != "locked")
        assert all(task.ranks is None for task in tasks if task.state != "submitted")

    def check_left(self) -> None:
        tasks = self.tasks()
        with self.world.sessions() as session:
            items = session.scalars(
                select(RankingItem).where(RankingItem.campaign_id == uuid.UUID(self.campaign["id"]))
            ).all()
        for user in self.users:
            mine = {task.item_id for task in tasks if task.user_id == user and task.state != "locked"}
            open_ = {item.id for item in items if item.gold is not None or item.rankings < self.overlap}
            given_ = next_tasks(self.world, self.campaign, user)
            assert given_.left == len(open_ - mine)
            assert (given_.state == "done") == (not given_.items and given_.left == 0)


def _held(session: Session, campaign: Any) -> Counter[uuid.UUID]:
    live = RankingTask.state == "locked", RankingTask.locked_until > func.clock_timestamp()
    mine = RankingTask.campaign_id == uuid.UUID(campaign["id"])
    return Counter(session.scalars(select(RankingTask.item_id).where(*live, mine)))


@pytest.fixture
def users(world: RankingWorld) -> list[uuid.UUID]:
    world.evaluation(prompts=5)
    return people(world, "abc")


# No shrinking: each step asks a real database, and a whole sequence is short enough to read.
@settings(
    max_examples=20,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_no_sequence_of_steps_breaks_a_campaign(world: RankingWorld, users: list[uuid.UUID], steps: Any) -> None:
    model = Model(world, users, world.campaign(name=f"c-{uuid.uuid4().hex[:12]}"))
    for action, who, which in steps:
        model.step(action, who, which)
        model.check()
    model.check_left()
