"""What a report costs: queries and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sqlalchemy import Engine, event

from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]
STYLES = ("single", "pairwise", "alpaca_eval", "arena_hard")


@pytest.fixture
def queries(shared: Engine) -> Iterator[list[str]]:
    """What is sent to the database."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        sent.append(statement)

    event.listen(shared, "before_cursor_execute", note)
    yield sent
    event.remove(shared, "before_cursor_execute", note)


def judged(made: Evaluated, entrants: int) -> None:
    """Verdicts of judges of all styles on everything; the later an entrant, the better on average."""
    random = np.random.default_rng(0)
    names = [f"m{place}" for place in range(entrants)]
    for place, name in enumerate(names):
        made.entrant(name, letters=(100 + 20 * place + random.integers(0, 200, made.prompts)).tolist())
    quality = np.arange(entrants) / 4 + random.normal(size=(made.prompts, entrants))
    for style in STYLES:
        rows = []
        if style == "single":
            for turn in range(1, made.turns + 1):
                for at, best in zip(range(made.prompts), quality, strict=True):
                    for name, value in zip(names, best, strict=True):
                        rows.append(
                            {"position": at, "turn": turn, "a": name, "value": float(np.clip(5 + value, 1, 10))}
                        )
        else:
            pairs = [(a, b) for a in range(entrants) for b in range(a) if style == "pairwise" or b == 0]
            for at in range(made.prompts):
                for a, b in pairs:
                    for first in (True, False) if style != "alpaca_eval" else (True,):
                        noise = random.normal() / 2
                        value = float(quality[at, a] - quality[at, b] + noise > 0)
                        rows.append({"position": at, "a": f"m{a}", "b": f"m{b}", "a_first": first, "value": value})
        made.judge(style, rows, name=style, settings={"baseline": "m0"})


def test_the_number_of_queries_does_not_grow_with_the_verdicts(evaluated: Make, queries: list[str]) -> None:
    small, large = evaluated(name="small", prompts=5), evaluated(name="large", prompts=60)
    counts = []
    for made in (small, large):
        judged(made, 4)
        made.rewards({name: [1.0] * made.prompts for name in made.ids})
        made.campaign({f"ann-{made.name}": {at: dict.fromkeys(made.ids, 1) for at in range(made.prompts)}})
        queries.clear()
        made.report()
        counts.append(len(queries))
    assert counts[0] == counts[1] < 45


@pytest.mark.long
def test_a_report_over_100_000_verdicts_takes_five_seconds_at_most(evaluated: Make) -> None:
    made = evaluated(prompts=1100, turns=2)
    judged(made, 8)
    began = time.process_time()
    report = made.report()
    spent = time.process_time() - began
    assert sum(judge.verdicts for judge in report.judges) > 100_000
    assert spent < 5
