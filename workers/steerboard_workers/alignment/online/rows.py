"""What the scoring of answers needs of the rows that they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steerboard_contracts.tools import answer_text
from steerboard_workers.alignment.training_method import Row


@dataclass
class RowTexts:
    """The texts of each row, by its number: the reference answer, where it has one, and the prompt."""

    references: dict[int, str] = field(default_factory=dict)
    prompts: dict[int, Any] = field(default_factory=dict)

    def add(self, number: int, row: Row) -> None:
        reference = reference_answer(row)
        if reference is not None:
            self.references[number] = reference
        self.prompts[number] = row["prompt"]


def reference_answer(row: Row) -> str | None:
    """The `reference` of a prompt, the response of an instruction. Labelled and unpaired responses are anyone's."""
    if "reference" in row:
        return row["reference"] or None
    if "reward" in row or "desirable" in row:
        return None
    return answer_text(row["response"]) if "response" in row else None
