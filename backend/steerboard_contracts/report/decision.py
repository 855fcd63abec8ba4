"""What a rule that may stop the rounds of a recipe found after one of them."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate

WIN_RATE = "win_rate"


class RoundDecision(BaseModel):
    """Whether a judge rated the policy of a round lower than the one that the round began with, on the same prompts.

    `before`, `after`: mean rewards or scores in `units`; where a judge compared the two, `win_rate`: their shares of
    the wins. `difference`: mean of after less before by prompt. `p`: Wilcoxon's signed-rank test on these differences,
    two-sided; null for fewer than 6 prompts. `fell`: p is below 5%, and mean and ranks both are on the side of a fall.
    """

    judge: str
    units: str
    prompts: int
    before: Estimate
    after: Estimate
    difference: Estimate
    p: float | None
    fell: bool

    @property
    def words(self) -> str:
        """`independent fell from 0.31 to 0.12 on 100 prompts (p 0.003)`; of a judge that compared the two,
        `gpt preferred the new answers to those before in 31% of 100 prompts (p 0.003)`."""
        if self.units == WIN_RATE:
            return self._compared
        fell = "fell" if self.fell else "did not fall by more than its noise:"
        test = f"p {self.p:.2g}" if self.p is not None else "too few for a test"
        moved = f"from {_short(self.before.value)} to {_short(self.after.value)}"
        return f"{self.judge} {fell} {moved} on {self.prompts} prompts ({test})"

    @property
    def _compared(self) -> str:
        share = "none" if self.after.value is None else f"{self.after.value:.0%}"
        test = f"p {self.p:.2g}" if self.p is not None else "too few for a test"
        noise = "" if self.fell else ", no fall by more than its noise"
        of = f"{share} of {self.prompts} prompts ({test})"
        return f"{self.judge} preferred the new answers to those before in {of}{noise}"


def _short(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.3g}"
