"""Preference datasets made of an evaluation."""

from __future__ import annotations

from typing import Any

from ranking_world import PROJECT, RankingWorld

PATH = f"{PROJECT}/evaluations/quokka-eval/preferences"


def make(world: RankingWorld, *sources: dict[str, str], status: int = 201, **given: Any) -> Any:
    answer = world.owner.post(PATH, json={"from": list(sources) or None, **given})
    assert answer.status_code == status, answer.text
    return answer.json()


def rows(world: RankingWorld, dataset: Any) -> list[dict[str, Any]]:
    """Samples with their extra fields."""
    answer = world.owner.get(f"{PROJECT}/datasets/{dataset['name']}/samples?limit=500")
    assert answer.status_code == 200, answer.text
    return [row["sample"] | row["extra"] for row in sorted(answer.json()["items"], key=lambda row: row["row"])]


def pairs(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    short = {"zebra-raw": "z", "walrus-sft": "w", "heron-dt": "h"}
    return [(short[row["chosen_entrant"]], short[row["rejected_entrant"]]) for row in rows]


def rank(person: Any, campaign: Any, ranks: dict[str, int], **more: Any) -> None:
    """Ranks the next item, by the place of the entrant in the evaluation."""
    task = person.first(campaign)
    given = [ranks[answer["turns"][0].split()[2]] for answer in task["answers"]]
    assert person.submit(task, given, **more).status_code == 200


def train_reward_model(world: RankingWorld, dataset: Any) -> Any:
    body = {"config": {"run": "train", "method": "reward_model"}, "inputs": {"model": "sft", "data": dataset["name"]}}
    return world.owner.post(f"{PROJECT}/runs", json=body)
