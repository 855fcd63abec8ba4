"""`steerboard evaluations rank`: the address that it prints leads to a page on which one can rank."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any

import httpx
import pytest
from ranking_world import NAMES, RANKINGS, RankingWorld

from steerboard.cli.client import Client
from steerboard.cli.demo.showing import ask_for_rankings
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.report.pipeline import EvaluationRef, MethodRow, PipelineReport
from steerboard_contracts.report.sections.recipe import RewardModelSummary
from support.processes.command_line import Done, Steerboard, steerboard, url
from support.rows.other_token import token_headers

__all__ = ["steerboard", "url"]
NINE = tuple(f"policy-{number}" for number in range(9))


@pytest.fixture
def ranked(world: RankingWorld, steerboard: Steerboard, url: str, token: str) -> Any:
    """Runs the command on the evaluation."""
    world.evaluation(names=NAMES)

    def run(*options: str) -> Done:
        return steerboard(url, token, "evaluations", "rank", "quokka-eval", *options)

    return run


def follow(link: str) -> tuple[httpx.Client, str]:
    """What a browser has after the link's button: a session, and the path that it is led to."""
    address = httpx.URL(link)
    browser = httpx.Client(base_url=f"{address.scheme}://{address.host}:{address.port}")
    assert "Sign in" in browser.get(link).text
    answer = browser.post(link)
    assert answer.status_code == 303
    browser.headers["X-CSRF-Token"] = browser.get("/api/v1/session").json()["csrf_token"]
    return browser, answer.headers["location"]


def test_the_address_leads_to_a_campaign_that_can_be_ranked(ranked: Any, world: RankingWorld, url: str) -> None:
    printed = ranked("--limit", "2", "--instructions", "Put the most helpful answer first.").stdout
    assert "ranking-1: 5 answers to each of 2 prompts, 0 done" in printed
    (link,) = re.findall(r"Signed in once:  (\S+)", printed)
    browser, page = follow(link)
    with closing(browser):
        assert f"Rank them at {url}{page}\n" in printed
        campaign = re.fullmatch(r"/p/default/rank/([0-9a-f-]{36})", page)
        assert campaign is not None
        (task,) = browser.post(f"{RANKINGS}/{campaign[1]}/next", json={"ahead": 1}).json()["items"]
        assert [answer["key"] for answer in task["answers"]] == list("ABCDE")
        body = {"ranks": [1, 2, 3, 4, 5], "seconds": 3, "submission": task["id"]}
        assert browser.post(f"{RANKINGS}/tasks/{task['id']}/submit", json=body).status_code == 200
    again = ranked("--json")
    shown = json.loads(again.stdout)
    assert (shown["address"], shown["campaign"]["done_items"]) == (url + page, 1)


def test_an_open_campaign_is_shown_again_and_another_is_opened_only_when_asked_for(ranked: Any) -> None:
    names = [
        json.loads(ranked(*options, "--json").stdout)["campaign"]["name"]
        for options in ((), (), ("--limit", "1"), (), ("--entrant", NAMES[0], "--entrant", NAMES[2]))
    ]
    assert names == ["ranking-1", "ranking-1", "ranking-2", "ranking-2", "ranking-3"]


def test_a_token_that_signs_nobody_in_gets_the_address_alone(
    ranked: Any, world: RankingWorld, steerboard: Steerboard, url: str
) -> None:
    token = token_headers(world.sessions, world.project.id, "read", "write")["Authorization"].removeprefix("Bearer ")
    done = steerboard(url, token, "evaluations", "rank", "quokka-eval")
    assert (done.returncode, "Rank them at" in done.stdout, "sign-in" in done.stdout) == (0, True, False)


def test_a_closed_campaign_is_not_shown(ranked: Any, world: RankingWorld) -> None:
    closed = json.loads(ranked("--json").stdout)["campaign"]
    assert world.owner.patch(world.path(closed), json={"state": "closed"}).status_code == 200
    assert json.loads(ranked("--json").stdout)["campaign"]["name"] == "ranking-2"


def test_a_command_opens_a_campaign_of_another_task_with_the_entrants_that_fit(
    world: RankingWorld, steerboard: Steerboard, url: str, token: str
) -> None:
    world.evaluation(names=NINE)
    opened = steerboard(url, token, "evaluations", "rank", "quokka-eval", "--task", "pairwise")
    assert opened.returncode == 0, opened.stderr
    assert "2 answers to each of 4 prompts" in opened.stdout
    entrants = [part for name in NINE[:3] for part in ("--entrant", name)]
    refused = steerboard(url, token, "evaluations", "rank", "quokka-eval", "--task", "pairwise", *entrants)
    assert refused.returncode == 1
    assert "Name 2 of the evaluation's" in refused.stderr


def test_the_demo_asks_about_the_best_of_each_method(
    world: RankingWorld, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEERBOARD_URL", url)
    monkeypatch.setenv("STEERBOARD_TOKEN", token)
    evaluation = EvaluationRef(id=world.evaluation(prompts=25, names=NAMES), name="quokka-eval")
    raw, sft, low, high, chosen = NAMES
    rows = [method_row(raw, "base", 0.1), method_row(sft, "sft", 0.2), method_row(chosen, "sft", 0.4, best_of=8)]
    rows += [method_row(low, "dt", -1.0, score=-5.0), method_row(high, "dt", 1.0, score=5.0)]
    report = PipelineReport(
        evaluation=evaluation,
        methods=rows,
        reward_model=RewardModelSummary(held_out_accuracy=None, pairs=0),
        control=None,
        labelled_rewards=None,
        prompts=25,
    )
    name, campaign = ask_for_rankings(Client(), report, "Put the best first.")
    assert (name, campaign["entrants"], campaign["items"]) == ("quokka-eval", [high, chosen, sft, raw], 20)
    assert (campaign["state"], campaign["warnings"]) == ("open", [])


def method_row(
    name: str, model: str, reward: float, best_of: int | None = None, score: float | None = None
) -> MethodRow:
    return MethodRow(
        method=model,
        name=name,
        entrant=model,
        score=None if score is None else Condition.model_validate(score),
        best_of=best_of,
        n=25,
        reward_mean=reward,
        reward_low=reward,
        reward_high=reward,
        length_mean=1.0,
        truncated=0.0,
        distinct_1=1.0,
        distinct_2=1.0,
        win_rate_vs_baseline=None,
        independent_win_rate_vs_baseline=None,
        device_seconds=1.0,
    )
