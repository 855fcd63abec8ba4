"""Columns find their fields by name, by content or by `--map`; otherwise the error lists what there is."""

from __future__ import annotations

from typing import Any

import pytest

from steerboard.datasets.parsing.mapping import plan_mapping
from steerboard.datasets.parsing.row_builder import Shaped, Shaper
from steerboard_contracts.samples import SampleKind, validate_sample
from steerboard_files.errors import UnknownColumn
from steerboard_files.records import Problem

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
SHAREGPT = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
WORSE = [CHAT[0], {"role": "assistant", "content": "Go away"}]


def shaped(
    row: dict[str, Any], kind: SampleKind | None = None, given: dict[str, str] | None = None, csv: bool = False
) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    mapping = plan_mapping(kind, list(row), [row], given or {})
    result = Shaper(mapping, texts_only=csv)(row)
    assert isinstance(result, Shaped), result
    sample = validate_sample(mapping.kind, result.sample, 1)
    return mapping.kind, sample.model_dump(exclude_none=True), result.extra


HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("row", "kind", "fields"),
    [
        ({"prompt": "Hi", "response": "Hello"}, "instructions", {"response": "Hello"}),
        ({"question": "Hi", "answer": "Hello"}, "instructions", {"response": "Hello"}),
        ({"instruction": "Hi", "input": "", "output": "Hello"}, "instructions", {"response": "Hello"}),
        ({"messages": CHAT}, "instructions", {"response": "Hello"}),
        ({"conversations": SHAREGPT}, "instructions", {"response": "Hello"}),
        ({"prompt": "Hi", "chosen": "a", "rejected": "b"}, "preferences", {"chosen": "a", "rejected": "b"}),
        ({"chosen": CHAT, "rejected": WORSE}, "preferences", {"chosen": "Hello", "rejected": "Go away"}),
        (
            {"prompt": "Hi", "chosen": CHAT, "rejected": WORSE, "messages": CHAT},
            "preferences",
            {"chosen": "Hello", "rejected": "Go away"},
        ),
        (
            {"prompt": HI, "chosen": CHAT[1:], "rejected": WORSE[1:]},
            "preferences",
            {"chosen": "Hello", "rejected": "Go away"},
        ),
        ({"prompt": "Hi", "completion": "Hello", "label": True}, "unpaired", {"response": "Hello", "desirable": True}),
        (
            {"prompt": "Hi", "response": "Hello", "reward": 2},
            "labelled",
            {"response": "Hello", "reward": 2.0, "source": "imported"},
        ),
        ({"prompt": "Hi"}, "prompts", {}),
    ],
)
def test_common_forms_are_recognised(row: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    recognised, sample, _ = shaped(row)
    assert recognised == kind
    assert sample == {"prompt": HI, **fields}


def test_transcripts_are_split_without_a_prompt_column() -> None:
    start = "\n\nHuman: Hi\n\nAssistant: Yes?\n\nHuman: How?\n\nAssistant: "
    kind, sample, _ = shaped({"chosen": start + "Well.", "rejected": start + "No."})
    assert kind == "preferences"
    assert [m["role"] for m in sample["prompt"]] == ["user", "assistant", "user"]
    assert (sample["chosen"], sample["rejected"]) == ("Well.", "No.")


def test_a_transcript_as_prompt_is_split_too() -> None:
    row = {"prompt": "\n\nHuman: Hi\n\nAssistant:", "chosen": "a", "rejected": "b"}
    assert shaped(row)[1]["prompt"] == HI


def test_instruction_and_input_are_one_prompt() -> None:
    _, sample, extra = shaped({"instruction": "Add", "input": "1 and 2", "output": "3"})
    assert sample["prompt"][0]["content"] == "Add\n\n1 and 2"
    assert extra is None


def test_a_system_column_opens_the_prompt() -> None:
    _, sample, _ = shaped({"system_prompt": "Be kind.", "question": "Hi", "response": "Hello"})
    assert [m["role"] for m in sample["prompt"]] == ["system", "user"]


def test_margins_come_from_two_scores() -> None:
    row = {"prompt": "Hi", "chosen": "a", "rejected": "b", "score_chosen": 8.5, "score_rejected": 6.0}
    _, sample, extra = shaped(row)
    assert sample["margin"] == 2.5
    assert extra == {"score_chosen": 8.5, "score_rejected": 6.0}


def test_other_columns_are_kept_beside_the_sample() -> None:
    assert shaped({"prompt": "Hi", "response": "a", "model": "m", "turn": 3})[2] == {"model": "m", "turn": 3}


REWARDBENCH = {"prompt": "Hi", "chosen": "a", "rejected": "b", "subset": "hep-rust", "id": 7, "chosen_model": "m"}


def test_a_benchmarks_subset_is_where_its_pair_is_from() -> None:
    kind, sample, extra = shaped(REWARDBENCH)
    assert (kind, sample["source"]) == ("preferences", "hep-rust")
    assert extra == {"id": 7, "chosen_model": "m"}


def test_a_column_named_source_wins_over_a_subset() -> None:
    _, sample, extra = shaped({**REWARDBENCH, "source": "mine"})
    assert sample["source"] == "mine"
    assert extra == {"subset": "hep-rust", "id": 7, "chosen_model": "m"}


def test_a_given_column_wins_over_a_recognised_one() -> None:
    row = {"prompt": "wrong", "q": "Hi", "response": "a", "gpt4_score": 9}
    kind, sample, _ = shaped(row, "labelled", {"prompt": "q", "reward": "gpt4_score"})
    assert (kind, sample["prompt"], sample["reward"]) == ("labelled", HI, 9.0)


def test_cells_of_a_csv_become_what_their_field_needs() -> None:
    row = {"prompt": "Hi", "chosen": "a", "rejected": "b", "margin": "0.5"}
    assert shaped(row, csv=True)[1]["margin"] == 0.5
    assert "margin" not in shaped({**row, "margin": ""}, csv=True)[1]
    assert shaped({"prompt": "Hi", "response": "a", "label": "bad"}, csv=True)[1]["desirable"] is False


def test_wrong_columns_are_listed_with_what_was_expected() -> None:
    with pytest.raises(UnknownColumn) as refused:
        plan_mapping("preferences", ["prompt", "better", "worse"], [], {})
    assert refused.value.code == "unknown_column"
    for word in ("chosen", "rejected", "better", "worse", "--map"):
        assert word in str(refused.value)


def test_a_very_wide_file_is_told_by_its_first_columns() -> None:
    with pytest.raises(UnknownColumn) as refused:
        plan_mapping(None, [f"feature_{at}" for at in range(300)], [], {})
    assert "feature_19, and 280 more" in str(refused.value)
    assert "feature_20" not in str(refused.value)
    with pytest.raises(UnknownColumn) as refused:
        plan_mapping(None, ["x" * 5000], [], {})
    assert len(str(refused.value)) < 300


def test_a_given_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="Prompt"):
        plan_mapping("prompts", ["prompt"], [{"prompt": "Hi"}], {"prompt": "Prompt"})


def test_a_given_field_that_the_kind_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="reward"):
        plan_mapping("prompts", ["prompt"], [{"prompt": "Hi"}], {"reward": "prompt"})


def test_messages_that_end_with_the_user_are_no_instruction() -> None:
    mapping = plan_mapping(None, ["messages"], [{"messages": CHAT}], {})
    assert isinstance(Shaper(mapping, texts_only=False)({"messages": HI}), Problem)
