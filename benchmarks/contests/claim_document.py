"""The document of `make bench-claim`, from what each seed's pipeline found; `claim.py` describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from contests.claim_costs import Point, at_one_epoch, at_samples, best_of_n, cost_of, curve, ratios, spread, until
from contests.claim_platform import BATCH, BEST_OF, DT_STAGES, ENTRANTS, ONLINE, SeedResult, Sizes
from contests.claim_words import may, may_not

OTHERS = ("dpo", "best_of_n", *ONLINE)
OFFLINE = ("dt", "dpo", "best_of_n")
# A policy, and with PPO its critic, learn in an update.
LEARNERS = {"ppo": 2, "rloo": 1}
DT_EPOCHS = 3.0


def document(about: Mapping[str, Any], sizes: Sizes, outcomes: Mapping[int, SeedResult]) -> dict[str, Any]:
    by_seed = {seed: of_seed(outcome, sizes) for seed, outcome in outcomes.items()}
    first = next(iter(outcomes.values()))
    content = {
        **about,
        "quick": sizes.quick,
        "sizes": {"samples": sizes.samples, "reach": sizes.reach, "best_of": BEST_OF},
        "parameters": first.parameters,
        "held_out_prompts": first.prompts,
        "judge_accuracy": [outcome.accuracy["independent"] for outcome in outcomes.values()],
        "ratios": {
            method: {
                name: _over_seeds([figures["methods"][method]["ratios"][name] for figures in by_seed.values()])
                for name in ("occupied", "arithmetic", "arithmetic_one_epoch", "to_equal_score")
            }
            for method in OTHERS
        },
        "scores": {method: _scores(list(outcomes.values()), method) for method in ENTRANTS},
        "costs": {
            method: {
                name: _over_seeds([figures["methods"][method]["equal_samples"][name] for figures in by_seed.values()])
                for name in ("seconds", "arithmetic")
            }
            for method in ("dt", *OTHERS)
        },
        "failed_seconds": sum(
            ledger.failed_device_seconds for outcome in outcomes.values() for ledger in outcome.ledgers.values()
        ),
        "by_seed": by_seed,
    }
    return {**content, "may": may(content), "may_not": may_not(content)}


def of_seed(outcome: SeedResult, sizes: Sizes) -> dict[str, Any]:
    """Costs, ratios and curves of one seed. DT's score is the judge's, of its greedy answers at the score of 5."""
    behind = [outcome.ledgers[name] for name in DT_STAGES]
    dt = cost_of(behind)
    once = at_one_epoch(behind, 1.0 if sizes.quick else DT_EPOCHS)
    target = outcome.scores["dt"]["judge"]
    methods: dict[str, Any] = {"dt": {"equal_samples": asdict(dt), "one_epoch": once}}
    for method in OTHERS:
        points: list[Point] = []
        if method in ONLINE:
            points = curve(outcome.ledgers[method], outcome.steps[method], BATCH, LEARNERS[method])
            equal, reached = at_samples(points, sizes.samples), until(points, target)
        elif method == "dpo":
            equal = cost_of([outcome.ledgers[method]])
            reached = equal if outcome.scores[method]["judge"] >= target else None
        else:
            equal, reached = best_of_n(outcome.ledgers["best_of_n"], outcome.prompts * BEST_OF, sizes.samples), None
        computed = ratios(dt, equal, reached)
        methods[method] = {
            "equal_samples": None if equal is None else asdict(equal),
            "reached": None if reached is None else asdict(reached),
            "ratios": {**asdict(computed), "arithmetic_one_epoch": None if equal is None else once / equal.arithmetic},
        }
        if points:
            methods[method] |= {
                "spent": asdict(points[-1].cost),
                "curve": [_look(at) for at in points if at.judge is not None],
            }
    for method, scores in outcome.scores.items():
        methods.setdefault(method, {})
        methods[method] |= {"scores": scores, "sampled": outcome.sampled[method], "kl": outcome.kl[method]}
    best = max(OFFLINE, key=lambda name: outcome.scores[name]["judge"])
    return {"target": target, "best_offline": best, "methods": methods}


def _look(at: Point) -> dict[str, Any]:
    return {
        **asdict(at.cost),
        "step": at.step,
        "samples": at.samples,
        "judge": at.judge,
        "reward": at.reward,
        "kl": at.kl,
    }


def _scores(outcomes: Sequence[SeedResult], method: str) -> dict[str, Any]:
    of_greedy = {
        name: [outcome.scores[method][name] for outcome in outcomes] for name in ("judge", "quality", "reward")
    }
    of_sampled = {
        f"sampled_{name}": [outcome.sampled[method][name] for outcome in outcomes] for name in ("judge", "quality")
    }
    kl = {"kl": [outcome.kl[method]["value"] for outcome in outcomes]}
    return {name: _over_seeds(values) for name, values in (of_greedy | of_sampled | kl).items()}


def _over_seeds(values: Sequence[float | None]) -> dict[str, Any] | None:
    summary = spread(values)
    return None if summary is None else asdict(summary)
