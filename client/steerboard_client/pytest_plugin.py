"""Fixtures for tests in CI: `steerboard`, the board, and `steerboard_gate`, which holds rules against an evaluation.

def test_the_model_may_ship(steerboard_gate):
    steerboard_gate("nightly", [{"metric": "win_rate", "entrant": "new", "vs": "old", "op": ">", "value": 0.5}])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steerboard_client import Board
    from steerboard_client.schemas import GateVerdict

Rules = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("steerboard")
    group.addoption("--steerboard-project", default=None, help="Project of the `steerboard` fixtures.")


@pytest.fixture(scope="session")
def steerboard(pytestconfig: pytest.Config) -> Iterator[Board]:
    """The board of STEERBOARD_URL and STEERBOARD_TOKEN, or as the command line signed in."""
    from steerboard_client import connect  # other sessions do not pay for it

    with connect(project=pytestconfig.getoption("--steerboard-project")) as board:
        yield board


@pytest.fixture
def steerboard_gate(steerboard: Board) -> Callable[[str, Rules], GateVerdict]:
    """Fails the test unless the evaluation, or the pipeline of that name, passes; names the rules that do not hold."""

    def hold(name: str, rules: Rules) -> GateVerdict:
        from steerboard_client import ApiError

        try:
            verdict = steerboard.evaluation(name).gate(rules)
        except ApiError as error:
            if error.status != 404:
                raise
            verdict = steerboard.pipeline(name).gate(rules)
        if verdict.verdict != "pass":
            lines = [
                f"{name}: {verdict.verdict}",
                *verdict.why,
                *(f"{rule.text}: {rule.why or rule.outcome}" for rule in verdict.rules if rule.outcome != "pass"),
            ]
            pytest.fail("\n".join(lines), pytrace=False)
        return verdict

    return hold
