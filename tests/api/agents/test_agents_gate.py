"""Agents hold an evaluation against rules."""

from __future__ import annotations

import pytest
from agent import Agent, Where, ask
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated

MET = {"metric": "win_rate", "entrant": "dt", "vs": "sft", "by": "judge", "stat": "ci_low", "op": ">", "value": 0.5}
MISSED = {"metric": "length_ratio", "entrant": "dt", "vs": "sft", "op": "<", "value": 0.9}
UNDECIDED = {"metric": "accuracy", "op": ">", "value": 0.6}


@pytest.fixture
def evaluation(sessions: sessionmaker[Session], project: Project) -> str:
    made = Evaluated(sessions, project, prompts=20)
    made.entrant("sft")
    made.entrant("dt")
    made.scores({"sft": [4] * 20, "dt": [6, 7] * 10})
    return made.name


def test_a_gate_passes_fails_or_cannot_be_decided_rule_by_rule(evaluation: str, inside: Where) -> None:
    async def hold(agent: Agent) -> None:
        for rules, verdict in (([MET], "pass"), ([MET, MISSED], "fail"), ([MET, UNDECIDED], "invalid")):
            held = await agent.call("gate", of="evaluations", name=evaluation, rules=rules)
            assert held["verdict"] == verdict
            assert [rule["rule"]["metric"] for rule in held["rules"]] == [rule["metric"] for rule in rules]
        assert held["rules"][0]["value"] > held["rules"][0]["bound"] == 0.5

    ask(inside, hold)


def test_wrong_rules_are_refused_with_their_place(evaluation: str, inside: Where) -> None:
    async def hold(agent: Agent) -> None:
        refused = await agent.refused("gate", of="evaluations", name=evaluation, rules=[{**MET, "opp": ">"}])
        assert any("opp" in place["location"] for place in refused["errors"])
        unknown = await agent.refused("gate", of="evaluations", name="nothing", rules=[MET])
        assert unknown["status"] == 404

    ask(inside, hold)
