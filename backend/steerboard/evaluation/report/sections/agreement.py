"""Whether people, judges and reward models say the same of the same items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from steerboard.evaluation.report.sources import Source
from steerboard_contracts.report.evaluation import AgreementRow
from steerboard_statistics.agreement import source_agreement


def agreement_rows(sources: Sequence[Source], *, seed: int) -> list[AgreementRow]:
    """Every two sources that share an item."""
    made = []
    for first, other in combinations(sources, 2):
        agreement = source_agreement(first.scores, other.scores, a_signs=first.signs, b_signs=other.signs, seed=seed)
        if not agreement.items:
            continue
        made.append(
            AgreementRow(
                a_by=first.by,
                a=first.label,
                b_by=other.by,
                b=other.label,
                entrants=agreement.entrants,
                items=agreement.items,
                spearman=agreement.spearman,
                kendall=agreement.kendall,
                item=agreement.item,
            )
        )
    return made
