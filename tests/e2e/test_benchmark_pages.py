"""Two reward models on the same items of a benchmark, on the page of one of them."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from pathlib import Path

import numpy as np
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.tables import RunInput, RunOutput
from steerboard_contracts.report.benchmark import BenchmarkResult
from steerboard_statistics.benchmarks.pairs import benchmark
from steerboard_statistics.benchmarks.rewardbench import WEIGHTS
from steerboard_statistics.benchmarks.tally import item_hash
from support.rows.ended_run import ended_run
from support.rows.evaluation_rows import Evaluated


def result(right: float) -> BenchmarkResult:
    """Forty pairs of every subset of RewardBench, of which about this share is right, the same ones first."""
    items = [(subset, number) for subset in WEIGHTS for number in range(40)]
    drawn = np.random.default_rng(3).random(len(items))
    pairs = [(subset, float(value < right), 0.5) for (subset, _), value in zip(items, drawn, strict=True)]
    return benchmark(pairs, [item_hash(*item) for item in items])


def benchmarked(session: Session, model: Model, dataset: uuid.UUID, result: BenchmarkResult) -> None:
    run = ended_run(
        model.project_id,
        name=f"benchmark-{model.name}",
        kind="benchmark",
        config={"run": "benchmark"},
        state="succeeded",
        reason="finished",
        ended_at=dt.datetime.now(dt.UTC),
    )
    session.add(run)
    session.flush()
    session.add(RunInput(run_id=run.id, name="reward", model_id=model.id))
    session.add(RunInput(run_id=run.id, name="pairs", dataset_id=dataset))
    document = result.model_dump(mode="json")
    session.add(RunOutput(run_id=run.id, name="benchmark", type="benchmark", document=document))


def test_a_reward_model_is_compared_with_another_one_on_its_page(
    rows_page: Page, sessions: sessionmaker[Session], project: Project, tmp_path: Path
) -> None:
    made = Evaluated(sessions, project, name="quokka", prompts=1)
    models = [made.model(name, role="reward") for name in ("steady", "newer", "untested")]
    path = tmp_path / "bench.jsonl"
    path.write_text(json.dumps({"prompt": "a", "chosen": "b", "rejected": "c"}) + "\n")
    with transaction(sessions) as session:
        owner = session.merge(project)
        imported = import_file(session, owner, path=path, name="bench", kind="preferences", clean=False)
        for model, right in zip(models, (0.7, 0.8), strict=False):
            benchmarked(session, model, imported.dataset.id, result(right))
    page = rows_page
    page.goto("/p/default/models/newer")
    other = page.get_by_role("combobox", name="Compare with")
    other.click()
    expect(page.get_by_role("option", name="newer")).to_have_count(0)
    page.get_by_role("option", name="untested").click()
    expect(page.get_by_text("untested has no finished benchmark.")).to_be_visible()
    other.click()
    page.get_by_role("option", name="steady").click()
    table = page.get_by_role("table", name="newer against steady on bench")
    whole = table.get_by_role("row", name="All items")
    expect(whole).to_contain_text(f"{100 * (result(0.8).accuracy.value or 0):.1f}%")
    expect(whole).to_contain_text("< 0.001")
    expect(table.get_by_role("row", name="RewardBench")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(1 + 2 + 4 + len(WEIGHTS))
    faults = faults_of(page, "paired-benchmark")
    assert not faults, told(faults)
