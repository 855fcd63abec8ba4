"""Histograms of rewards, and previews of what the methods would learn, against the training stage's own arithmetic."""

from __future__ import annotations

import io
import math
import random
import statistics

import pytest
from api_world import ApiWorld

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard_contracts.online.reward_weights import exponential_weight
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.losses import effective_sample_size

RANDOM = random.Random(7)
REWARDS = [round(RANDOM.gauss(1.0, 3.0), 3) for _ in range(200)] + [1.0] * 5


def training_rows(world: ApiWorld, name: str = "graded") -> dict[int, float]:
    """Row -> reward, as the stage reads them: without the held-out rows."""
    page = world.get(f"datasets/{name}/samples", limit=1000)
    rows = {row["row"]: row["reward"] for row in page["items"] if row["split"] == "train"}
    assert 0 < len(rows) < len(page["items"])
    return rows


def normaliser(rewards: list[float] = REWARDS) -> Normaliser:
    return Normaliser.fit(rewards, "graded")


def test_a_histogram_counts_every_reward_and_has_the_figures_of_all_rows(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    shown = world.get("datasets/graded/rewards/graded/histogram", bins=7)
    assert (shown["source"], shown["n"]) == ("graded", len(REWARDS))
    assert (shown["low"], shown["high"]) == (min(REWARDS), max(REWARDS))
    assert shown["mean"] == pytest.approx(statistics.fmean(REWARDS))
    assert shown["sd"] == pytest.approx(statistics.pstdev(REWARDS))
    assert shown["p50"] == pytest.approx(statistics.median(REWARDS))
    bins = shown["bins"]
    assert (len(bins), bins[0]["low"], bins[-1]["high"]) == (7, min(REWARDS), max(REWARDS))
    for place, bin_ in enumerate(bins):
        last = place == 6
        inside = [r for r in REWARDS if bin_["low"] <= r < bin_["high"] or (last and r == bin_["high"])]
        assert bin_["count"] == len(inside)
        assert last or bin_["high"] == bins[place + 1]["low"]
    assert len(world.get("datasets/graded/rewards/graded/histogram")["bins"]) == 40


def test_pinned_names_the_rewards_of_a_labelled_dataset(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    by_name = world.get("datasets/graded/rewards/graded/histogram")
    assert world.get("datasets/graded/rewards/pinned/histogram") == by_name
    assert world.get("datasets/graded/rewards/pinned")["items"][0]["value"] == REWARDS[0]
    (source,) = world.get("datasets/graded/rewards")
    assert world.get(f"datasets/graded/rewards/{source['id']}/histogram") == by_name
    assert world.get("datasets/hh/rewards/pinned/histogram", status=404)["code"] == "not_found"
    assert world.get("datasets/hh/rewards/graded/histogram", status=404)["code"] == "not_found"


def test_equal_rewards_are_one_bin(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    grades = io.BytesIO("".join(f'{{"row": {i}, "value": 2.5}}\n' for i in range(len(REWARDS))).encode())
    form = {"source": "flat"}
    files = {"file": ("g.jsonl", grades)}
    assert world.client.post(world.url("datasets/graded/rewards"), data=form, files=files).status_code == 201
    shown = world.get("datasets/graded/rewards/flat/histogram")
    assert shown["bins"] == [{"low": 2.5, "high": 2.5, "count": len(REWARDS)}]


def test_the_filter_keeps_training_rows_strictly_above_the_threshold(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    z = normaliser().z
    threshold = z(1.0)  # several rows are exactly on it
    rows = training_rows(world)
    kept = {row for row, reward in rows.items() if z(reward) > threshold}
    shown = world.post("previews/mle-filter", {"data": "graded", "threshold": threshold})
    assert (shown["total"], shown["kept"], shown["share"]) == (len(rows), len(kept), len(kept) / len(rows))
    assert shown["threshold_raw"] == pytest.approx(1.0)
    nearest = sorted(kept, key=lambda row: (rows[row], row))[:5]
    assert [row["row"] for row in shown["kept_examples"]] == nearest
    assert all(row["z"] > threshold for row in shown["kept_examples"])
    below = sorted(rows.keys() - kept, key=lambda row: (-rows[row], row))[:5]
    assert [row["row"] for row in shown["dropped_examples"]] == below
    assert shown["dropped_examples"][0] == {
        "row": below[0],
        "prompt": [{"role": "user", "content": f"Hi {below[0]}"}],
        "response": f"answer {below[0]}",
        "source": "mine",
        "reward": 1.0,
        "z": threshold,
    }


def test_a_threshold_above_all_rewards_keeps_nothing(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    shown = world.post("previews/mle-filter", {"data": "graded", "threshold": 50})
    assert (shown["kept"], shown["share"], shown["kept_examples"]) == (0, 0.0, [])
    assert len(shown["dropped_examples"]) == 5


@pytest.mark.parametrize(
    ("beta", "max_weight"),
    [(5.0, 20.0), (5.0, None), (0.5, 2.0), (0.1, None), (0.001, 20.0), (0.001, None), (1e300, 1.0), (1e-308, 3.0)],
)
def test_the_weights_are_those_of_training(world: ApiWorld, beta: float, max_weight: float | None) -> None:
    world.labelled("graded", REWARDS)
    weights = [exponential_weight(normaliser().z(reward), beta, max_weight) for reward in training_rows(world).values()]
    body = {"data": "graded", "beta": beta, "max_weight": max_weight, "bins": 10}
    shown = world.post("previews/rwr", body)
    n = len(weights)
    assert shown["n"] == n
    assert shown["largest_weight"] == pytest.approx(max(weights))
    clipped = sum(w >= max_weight for w in weights) / n if max_weight is not None else 0.0
    assert shown["clipped"] == clipped
    in_units = [w / max(weights) for w in weights]  # their squares may be too large a number otherwise
    assert shown["effective_sample_size"] == pytest.approx(effective_sample_size(in_units))
    assert shown["gradient_scale"] == pytest.approx(max(weights) * math.fsum(in_units) / n)
    assert sum(bin_["count"] for bin_ in shown["bins"]) == n
    assert shown["bins"][0]["low"] == pytest.approx(min(weights))
    assert shown["bins"][-1]["high"] == pytest.approx(max(weights))
    assert world.post("previews/rwr", {**body, "self_normalised": True})["gradient_scale"] == 1.0


def test_the_papers_beta_hardly_weighs_at_all(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    shown = world.post("previews/rwr", {"data": "graded"})
    assert shown["effective_sample_size"] > 0.94
    assert shown["clipped"] == 0.0


def test_previews_need_a_labelled_dataset_and_sound_numbers(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    for path in ("previews/mle-filter", "previews/rwr"):
        assert world.post(path, {"data": "hh"}, status=422)["code"] == "wrong_kind"
        assert world.post(path, {"data": "nope"}, status=404)["code"] == "not_found"
        assert world.post(path, {"data": "graded", "thresold": 1}, status=422)["code"] == "invalid_request"
    assert world.post("previews/rwr", {"data": "graded", "beta": 0}, status=422)["code"] == "invalid_request"


def test_a_reader_may_preview_and_another_project_sees_nothing(world: ApiWorld) -> None:
    world.labelled("graded", REWARDS)
    url = world.url("previews/mle-filter")
    body = {"data": "graded"}
    assert world.client.post(url, json=body, headers=world.token("read")).status_code == 200
    assert world.client.post(url, json=body, headers=world.token("write")).status_code == 403
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
    headers = world.token("read", project=other)
    theirs = "/api/v1/projects/other/previews/mle-filter"
    assert world.client.post(theirs, json=body, headers=headers).status_code == 404
    assert world.client.post(url, json=body, headers=headers).status_code == 404
