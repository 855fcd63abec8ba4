"""A preference model of the registry as a judge of an evaluation: its verdicts, its report, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from evaluation_world import SHORT, WINDOW, WORDS, EvaluationWorld
from sqlalchemy import select

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.tables import Entrant, Response
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.tables import RunInput
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.engines.preferences import Preference
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.comparing import compare, preference_engine
from steerboard_workers.stages.models.model_io import load_comparing_model
from steerboard_workers.stages.models.model_saving import save_model
from support.rows.ended_run import ended_run

JUDGES = "evaluations/eval/judges"
ASKED = {"style": "preference", "model": "compares"}


@pytest.fixture(scope="session")
def comparing(folders: Path) -> Path:
    """A model of random weights that compares, among those that `world` can register."""
    tokenizer = train_tokenizer([f"say {word}" for word in WORDS] * 20, 300, WINDOW)
    model = random_llama(BaseModelConfig(source="random:tiny-llama", hidden=32, layers=1, heads=2), tokenizer)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.5)
    info = ModelInfo(role="preference", architecture="LlamaForCausalLM", parameters=1, max_length=WINDOW)
    save_model(folders / "compares", model.eval(), tokenizer, info)
    return folders / "compares"


@pytest.fixture
def judged(world: EvaluationWorld, comparing: Path) -> EvaluationWorld:
    """An evaluation of three entrants whose answers are there, and a preference model."""
    world.register("compares", "compares")
    world.evaluate("eval", *({"model": model, "decoding": SHORT} for model in ("sft", "dt")))
    world.work_off()
    return world


def by_hand(folder: Path, prompt: list[dict[str, str]], a: str, b: str) -> Preference:
    engine = preference_engine(load_comparing_model(folder, "fp32", "cpu"))
    return compare(engine, [Comparison(prompt, a, b)])[0]


def verdicts(world: EvaluationWorld, judge: str = "compares-preference") -> dict[tuple[Any, ...], Any]:
    items = world.get(f"{JUDGES}/{judge}/verdicts", limit=500)["items"]
    return {
        (verdict["position"], verdict["turn"], verdict["a"], verdict["b"], verdict["a_first"]): verdict
        for verdict in items
    }


def report_of(world: EvaluationWorld) -> Any:
    return next(iter(world.get("evaluations/eval/report")["judges"]))


def test_it_compares_every_pair_in_both_orders_and_enters_the_report(judged: EvaluationWorld, comparing: Path) -> None:
    dry = judged.post(JUDGES, ASKED, status=200, params={"dry_run": True})
    assert dry == {"requests": 8, "cached": 0, "most_cost": None}  # 2 prompts, 2 turns, 1 pair, 2 orders
    made = judged.post(JUDGES, ASKED)
    assert (made["name"], made["model"], made["endpoint"]) == ("compares-preference", "compares", None)
    assert judged.work_off() == ["compare"]
    given = verdicts(judged)
    assert len(given) == 8
    answers = judged.responses()
    for position, question in ((0, "say red"), (1, "say apple")):
        a, b = answers["sft", position, 0][0], answers["dt_5", position, 0][0]
        told = by_hand(comparing, [{"role": "user", "content": question}], a, b)
        for first, p in ((True, told.forth), (False, told.back)):
            verdict = given[position, 1, "sft", "dt_5", first]
            assert (verdict["status"], verdict["value"]) == ("ok", pytest.approx(p, abs=1e-5))
    report = report_of(judged)
    assert (report["verdicts"], report["valid"], report["trained"]) == (8, True, [])
    (pair,) = report["comparison"]["pairs"]
    assert pair["win_rate"]["n"] == 2
    both = [
        [given[position, turn, "sft", "dt_5", first]["value"] for first in (True, False)]
        for position in (0, 1)
        for turn in (1, 2)
    ]
    flips = sum((forth - 0.5) * (back - 0.5) < 0 for forth, back in both)
    assert report["biases"]["flip_rate"]["value"] == pytest.approx(flips / 4)
    assert judged.get(f"{JUDGES}/compares-preference")["model_id"] == judged.get("models/compares")["id"]


def test_later_turns_are_judged_with_the_conversation_before_them(judged: EvaluationWorld, comparing: Path) -> None:
    """Earlier turns that differ are part of the answers."""
    with transaction(judged.sessions) as session:
        rows = session.scalars(select(Response).join(Entrant).order_by(Response.position, Entrant.position)).all()
        talks = ["same", "red"], ["same", "pear"], ["red", "house"], ["blue", "tree"]
        for row, turns in zip(rows, talks, strict=True):
            row.turns = turns
    judged.post(JUDGES, ASKED)
    judged.work_off()
    given = verdicts(judged)
    talk = [("user", "say red"), ("assistant", "same"), ("user", "say blue")]
    told = by_hand(comparing, [{"role": role, "content": text} for role, text in talk], "red", "pear")
    assert given[0, 2, "sft", "dt_5", True]["value"] == pytest.approx(told.forth, abs=1e-5)
    texts = [f"User: say apple\n\nAssistant: {one}\n\nUser: say pear\n\nAssistant: {two}" for one, two in talks[2:]]
    told = by_hand(comparing, [{"role": "user", "content": "say pear"}], *texts)
    assert given[1, 2, "sft", "dt_5", False]["value"] == pytest.approx(told.back, abs=1e-5)


def test_asked_again_it_compares_only_what_is_new(judged: EvaluationWorld) -> None:
    judged.post(JUDGES, ASKED)
    judged.work_off()
    before = verdicts(judged)
    judged.post("evaluations/eval/entrants", {"model": "dt", "score": -5, "decoding": SHORT})
    judged.work_off()
    judged.post(f"{JUDGES}/compares-preference/retry", {}, status=200)
    assert judged.work_off() == ["compare"]
    newest = judged.get("runs", kind="compare")["items"][0]
    assert judged.get(f"runs/{newest['id']}")["summary"]["comparisons"] == 8
    after = verdicts(judged)
    assert len(after) == 24
    assert all(after[place] == verdict for place, verdict in before.items())


def test_a_pair_that_does_not_fit_has_no_verdict_and_the_others_have_theirs(judged: EvaluationWorld) -> None:
    with transaction(judged.sessions) as session:
        row = session.scalars(select(Response).join(Entrant).order_by(Response.position, Entrant.position)).first()
        assert row is not None
        row.turns = ["house " * 300, "red"]
    judged.post(JUDGES, ASKED)
    judged.work_off()
    statuses = [verdict["status"] for verdict in verdicts(judged).values()]
    assert (statuses.count("error"), statuses.count("ok")) == (4, 4)
    assert "unfit" in verdicts(judged)[0, 1, "sft", "dt_5", True]["detail"]
    judged.post(f"{JUDGES}/compares-preference/retry", {}, status=200)
    judged.work_off()
    assert len(verdicts(judged)) == 8, "asked again, the same items have one verdict an order"


def test_the_report_marks_who_learned_from_what_it_prefers(judged: EvaluationWorld) -> None:
    judged.dataset("chosen", [{"prompt": "say tree"}])
    judged.trained_on("dt", "chosen")
    with transaction(judged.sessions) as session:
        judge = session.scalars(select(Model).where(Model.name == "compares")).one()
        chosen = session.scalars(select(Dataset).where(Dataset.name == "chosen")).one()
        about = {"name": "best", "kind": "select", "config": {"run": "select"}, "reason": "finished"}
        tournament = ended_run(judged.project.id, state="succeeded", **about)
        session.add(tournament)
        session.flush()
        session.add(RunInput(run_id=tournament.id, name="judge", model_id=judge.id))
        chosen.run_id = tournament.id
    judged.post(JUDGES, ASKED)
    judged.work_off()
    report = report_of(judged)
    assert report["trained"] == ["dt_5"]
    assert any(warning.startswith("circular: dt_5 learned from") for warning in report["warnings"])


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"model": "reward"}, "wrong_role", "body.model"),
        ({"endpoint": "gpt"}, "invalid_judge", "body.endpoint"),
        ({"model": None}, "invalid_judge", "body.endpoint"),
        ({"style": "pairwise"}, "invalid_judge", "body.style"),
        ({"settings": {"criteria": "brevity"}}, "invalid_judge", "body.settings.criteria"),
        ({"settings": {"entrants": ["sft"]}}, "invalid_judge", "body.settings.entrants"),
    ],
)
def test_what_does_not_fit_is_refused_by_field(
    judged: EvaluationWorld, change: dict[str, Any], code: str, field: str
) -> None:
    problem = judged.post(JUDGES, {**ASKED, **change}, status=422)
    assert problem["code"] == code
    assert [error["location"] for error in problem["errors"]] == [field]
    if code == "wrong_role":
        assert "select by their rewards" in problem["hint"]


def test_a_model_that_compares_gives_no_rewards_and_chooses_no_answer(judged: EvaluationWorld) -> None:
    problem = judged.post("evaluations/eval/rewards", {"model": "compares"}, status=422)
    assert (problem["code"], "the judge of an evaluation" in problem["hint"]) == ("wrong_role", True)
