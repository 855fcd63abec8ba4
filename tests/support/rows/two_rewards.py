"""A policy that learned from the sum of two reward models, and what both say of its answers."""

from __future__ import annotations

from steerboard_contracts.conditions.condition import Condition
from support.rows.evaluation_rows import Evaluated

# dt learned from helpful - 0.5 harmless. Asked for more, it is more helpful, less harmless, and has more of the sum.
HELPFUL = {"dt@5": [7.0] * 4, "dt@0": [3.0] * 4, "dt@-5": [1.0, 1.0, 1.0, 5.0], "sft": [0.0] * 4}
HARMLESS = {"dt@5": [10.0] * 4, "dt@0": [20.0] * 4, "dt@-5": [30.0] * 4, "sft": [0.0, 0.0, 0.0, 40.0]}


def enter_two_rewards(made: Evaluated) -> None:
    """Enters two rewards into an evaluation of four prompts."""
    named = [{"reward_source": name, "reward_model_hash": f"{name}-hash", "n": 90} for name in ("helpful", "harmless")]
    parts = [
        {**named[0], "weight": 1.0, "mean": 1.0, "sd": 2.0},
        {**named[1], "weight": -0.5, "mean": 0.0, "sd": 10.0},
    ]
    normaliser = {"mean": 0.5, "sd": 0.25, "n": 90, "reward_source": "both", "parts": parts}
    dt = made.model("our-dt", method="decision_transformer", info={"normaliser": normaliser})
    for score in (5.0, -5.0, 0.0):
        made.entrant(f"dt@{score:g}", source="model", model_id=dt.id, score=Condition.of({"rm_score": score}))
    made.entrant("sft")
    made.rewards(HELPFUL, name="helpful", content_hash="helpful-hash")
    made.rewards(HARMLESS, name="harmless", content_hash="harmless-hash")
