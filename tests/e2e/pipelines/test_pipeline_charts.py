"""The charts of a pipeline's stages in the browser: of what trains now, and of what is chosen."""

from __future__ import annotations

import re
import uuid

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.stage.events import Metrics, Progress
from support.rows.run_world import World


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)


def begin(world: World, pipeline: uuid.UUID, name: str, method: str, *losses: float) -> Claim:
    """A stage that a worker has, with these losses."""
    inputs = {"data": InputRef(dataset=world.dataset()), "model": InputRef(model=world.model())}
    world.create(name, pipeline_id=pipeline, config={"run": "train", "method": method}, inputs=inputs)
    claim = world.claim()
    assert claim is not None
    world.emit(claim, *(Metrics(step=step, values={"loss": loss}) for step, loss in enumerate(losses, 1)))
    return claim


def test_a_running_pipeline_opens_on_the_charts_of_what_trains(rows_page: Page, world: World) -> None:
    page = rows_page
    pipeline = world.pipeline("steered")
    claim = begin(world, pipeline, "tune", "sft", 3.0, 2.0, 1.5)
    world.emit(claim, Progress(done=3, total=10, unit="steps", phase="update"))
    page.goto(f"/p/default/pipelines/{pipeline}")
    expect(page.get_by_role("tab", name="Charts")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("img", name=re.compile("^loss over step. loss ends at 1.5"))).to_be_visible()
    expect(page.get_by_role("progressbar", name="tune, update: 3 of 10 steps")).to_be_visible()
    faults = faults_of(page, "pipeline-charts")

    # The next stage takes the place of the one that has ended, without a reload.
    world.act(claim, lambda session, claimed: attempt_outcomes.succeed(session, claimed, {}, 2.0))
    other = begin(world, pipeline, "prefer", "dpo", 0.7, 0.6)
    expect(page.get_by_role("img", name=re.compile("^loss over step. loss ends at 0.6"))).to_be_visible()

    stages = page.get_by_role("combobox", name="Stages in the charts")
    stages.click()
    page.get_by_role("option", name="tune (succeeded)").click()
    expect(
        page.get_by_role("img", name=re.compile("^loss over step. tune ends at 1.5; prefer ends at 0.6"))
    ).to_be_visible()
    faults |= faults_of(page, "pipeline-charts-two")
    link = page.url
    world.act(other, lambda session, claimed: attempt_outcomes.succeed(session, claimed, {}, 2.0))
    page.goto(link)
    expect(page.get_by_role("img", name=re.compile("^loss over step. tune ends"))).to_be_visible()
    page.goto(f"/p/default/pipelines/{pipeline}")
    expect(page.get_by_role("tab", name="Report")).to_have_attribute("aria-selected", "true")
    assert not faults, told(faults)


def test_variants_of_one_method_lie_in_the_same_charts(rows_page: Page, world: World) -> None:
    page = rows_page
    pipeline = world.pipeline("swept")
    for name, last in (("variant-1", 0.5), ("variant-2", 0.4)):
        claim = begin(world, pipeline, name, "dpo", 0.7, last)
        world.act(claim, lambda session, claimed: attempt_outcomes.succeed(session, claimed, {}, 2.0))
    page.goto(f"/p/default/pipelines/{pipeline}?tab=charts")
    loss = re.compile("^loss over step. variant-1 ends at 0.5; variant-2 ends at 0.4")
    expect(page.get_by_role("img", name=loss)).to_be_visible()
