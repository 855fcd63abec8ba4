"""The phases of offline stages, passed on before the stage's last word."""

from __future__ import annotations

from hand_pipeline import HandPipeline, Result

from steerboard_contracts.stage.events import Spent, Succeeded
from steerboard_contracts.watching.ledger import Phase, PhaseTime


def phases_of(result: Result) -> dict[Phase, PhaseTime]:
    """The phases as the platform has them in the end: what was reported last."""
    assert isinstance(result.last, Succeeded), result.last
    spent = result.events[-2]
    assert isinstance(spent, Spent)
    return spent.phases


def test_a_mixture_is_data_alone_also_in_a_process_of_its_own(pipeline: HandPipeline) -> None:
    pipeline.here = False
    phases = phases_of(pipeline.run("mixed", {"run": "mix", "parts": [{}], "size": 100}, {"parts.0": "$instructions"}))
    assert set(phases) == {"data"}
    assert phases["data"].seconds > 0


def test_a_score_stage_loads_scores_and_writes(pipeline: HandPipeline) -> None:
    result = pipeline.run("scored", {"run": "score"}, {"data": "$instructions", "reward": "reward"})
    phases = phases_of(result)
    assert set(phases) == {"load", "score", "data"}
    assert phases["score"].tokens > 300 * 4
    assert 0 < sum(phase.seconds for phase in phases.values()) <= result.seconds


def test_a_generate_stage_counts_the_tokens_it_sampled(pipeline: HandPipeline) -> None:
    config = {"run": "generate", "limit": 6, "decoding": {"max_new_tokens": 5, "temperature": 1.0}}
    result = pipeline.run("generated", config, {"model": "sft", "data": "$prompts"})
    phases = phases_of(result)
    assert set(phases) == {"load", "data", "generate"}
    assert phases["generate"].tokens == result.last.summary["tokens"] > 6
