"""Answers to one prompt are read behind one copy of it, wherever that changes no reward and no log-prob."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    Gemma2Config,
    Llama4TextConfig,
    LlamaConfig,
    MistralConfig,
)

from steerboard_workers.alignment.rendering.render import Rendered
from steerboard_workers.engines.log_probs import AnswerLogProbs, Drawn
from steerboard_workers.engines.rewards import TransformersRewards
from support.models.tiny_shape import SHAPE

CONFIGS = {
    "full": LlamaConfig(**SHAPE),
    "wide_window": MistralConfig(**SHAPE, sliding_window=64),
    "narrow_window": MistralConfig(**SHAPE, sliding_window=24),
    "eager": Gemma2Config(**SHAPE, sliding_window=64),
}
CHUNKED = {**SHAPE, "intermediate_size_mlp": 64, "num_local_experts": 2, "no_rope_layers": [1, 0]}
# transformers has no classifier for them.
CAUSAL = {
    **CONFIGS,
    "wide_chunks": Llama4TextConfig(**CHUNKED, attention_chunk_size=64),
    "narrow_chunks": Llama4TextConfig(**CHUNKED, attention_chunk_size=24),
}
RENDERER = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=0), process=None)
CPU = torch.device("cpu")


def answered(prompts: int, answers: int) -> list[Rendered]:
    """Rows of a prompt are not adjacent."""
    draw = np.random.default_rng(5)
    starts = [draw.integers(3, 64, draw.integers(8, 24)).tolist() for _ in range(prompts)]
    made = []
    for _ in range(answers):
        for start in starts:
            ids = start + draw.integers(3, 64, draw.integers(1, 12)).tolist()
            made.append(Rendered(ids, len(start), [], False))
    return made


class Scored:
    """An engine whose forward passes and notes are counted."""

    def __init__(self, config) -> None:
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config).eval()
        self.notes: list[str] = []
        self.positions = 0
        model.get_input_embeddings().register_forward_hook(self._count)
        self.engine = TransformersRewards(model, RENDERER, CPU, self.notes.append)

    def _count(self, module, inputs, output) -> None:
        self.positions += inputs[0].numel()

    def rewards(self, sequences: list[Rendered], batch_tokens: int = 400) -> list[float]:
        rewards: dict[int, float] = {}
        self.positions = 0
        for places, values in self.engine.score(sequences, batch_tokens):
            assert not rewards.keys() & set(places)
            rewards |= zip(places, values, strict=True)
        return [rewards[place] for place in range(len(sequences))]


@pytest.mark.parametrize("name", CONFIGS)
def test_rewards_are_those_of_each_answer_by_itself(name):
    scored, sequences = Scored(CONFIGS[name]), answered(6, 4)
    together = scored.rewards(sequences)
    alone = [scored.rewards([sequence])[0] for sequence in sequences]
    assert together == pytest.approx(alone, abs=1e-5)
    assert max(together) - min(together) > 1e-2
    # Again, for the model was left with another attention.
    assert scored.rewards(sequences) == together


@pytest.mark.parametrize("name", CONFIGS)
def test_a_prompt_is_computed_once_where_that_is_exact_and_it_is_said_where_not(name):
    scored, sequences = Scored(CONFIGS[name]), answered(6, 4)
    scored.rewards(sequences)  # tries out what the model allows
    scored.rewards(sequences)
    tokens = sum(len(sequence.ids) for sequence in sequences)
    if name.startswith("narrow"):
        assert len(scored.notes) == 1
        assert "than the 24 tokens that attention sees" in scored.notes[0]
    elif name == "eager":
        assert scored.notes == ["this architecture cannot share prompts: each answer is computed with its own"]
        assert scored.positions >= tokens
    else:
        prompts = sum(sequence.prompt_length for sequence in sequences)
        assert scored.positions <= tokens - prompts * 3 / 4 + 1
        assert not scored.notes


def test_equal_answers_get_the_very_same_reward_and_are_computed_once():
    scored, sequences = Scored(CONFIGS["full"]), answered(3, 2)
    once = scored.rewards(sequences)
    scored.rewards(sequences)
    positions = scored.positions
    twice = scored.rewards(sequences * 2)
    assert twice[:6] == twice[6:]
    assert twice[:6] == once
    assert scored.positions == positions


def test_passes_keep_their_budget_however_many_answers_a_prompt_has():
    scored, sequences = Scored(CONFIGS["full"]), answered(1, 60)
    scored.rewards(sequences, 100)  # tries out what the model allows
    widest: list[int] = []
    hook = scored.engine._passes.module.model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: widest.append(inputs[0].numel())
    )
    values = scored.rewards(sequences, 100)
    hook.remove()
    assert len(values) == 60
    assert max(widest) <= 100


def test_an_architecture_that_fails_on_shared_prompts_is_given_each_answer_by_itself():
    scored, sequences = Scored(CONFIGS["full"]), answered(2, 2)

    def refuse(module, inputs, named) -> None:
        if named["position_ids"] is not None:
            raise IndexError("too many dimensions for this mask")

    scored.engine._passes.module.register_forward_pre_hook(refuse, with_kwargs=True)
    together = scored.rewards(sequences)
    assert together == pytest.approx([scored.rewards([sequence])[0] for sequence in sequences], abs=1e-5)
    assert scored.notes == ["this architecture cannot share prompts: each answer is computed with its own"]


# -- log-probs --------------------------------------------------------------------------------------------------------


class Read:
    """Log-probs of answers, with what their passes took."""

    def __init__(self, config, temperature: float = 1.0) -> None:
        torch.manual_seed(0)
        self.model = AutoModelForCausalLM.from_config(config).eval()
        self.temperature = temperature
        self.notes: list[str] = []
        self.reader = AnswerLogProbs(self.model, CPU, 0, temperature, self.notes.append)

    def passes(self, drawn: list[Drawn], batch_tokens: int = 400) -> list[dict[int, float]]:
        return [
            dict(zip(places, self.reader.read(*part), strict=True))
            for places, *part in self.reader.passes(drawn, batch_tokens)
        ]

    def plain(self, sample: Drawn) -> float:
        """The log-probability by the model's own forward."""
        with torch.no_grad():
            logits = self.model(torch.tensor([sample.prompt + sample.answer])).logits[0, len(sample.prompt) - 1 : -1]
        log_probs = (logits.double() / self.temperature).log_softmax(-1)
        return float(log_probs.gather(1, torch.tensor(sample.answer)[:, None]).sum())


def drawn(prompts: int, answers: int) -> list[Drawn]:
    sequences = answered(prompts, answers)
    return [
        Drawn(sequence.ids[: sequence.prompt_length], sequence.ids[sequence.prompt_length :]) for sequence in sequences
    ]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("name", CAUSAL)
def test_log_probs_are_those_of_the_plain_forward(name, temperature):
    """Logits that are capped behind the LM head are included."""
    read, answers = Read(CAUSAL[name], temperature), drawn(6, 4)
    positions: list[int] = []
    hook = read.model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: positions.append(inputs[0].numel())
    )
    read.passes(answers)  # tries out what the model allows
    positions.clear()
    values = {place: value for part in read.passes(answers) for place, value in part.items()}
    hook.remove()
    plain = Read(CAUSAL[name], temperature)
    assert [values[place] for place in range(len(answers))] == pytest.approx(
        [plain.plain(a) for a in answers], abs=1e-5
    )
    tokens = sum(answer.tokens for answer in answers)
    if name == "full" or name.startswith("wide"):
        assert sum(positions) < 0.8 * tokens
        assert not read.notes
    elif name == "eager":
        assert sum(positions) >= tokens
        assert read.notes == ["this architecture cannot share prompts: each answer is computed with its own"]
    else:  # shared where an answer is within what attention sees
        assert 0.8 * tokens < sum(positions) < tokens
        assert len(read.notes) == 1
        assert "than the 24 tokens that attention sees" in read.notes[0]


def test_passes_are_those_of_all_answers_and_one_of_them_gives_the_same_alone():
    """A kill thus changes nothing: what is read after it is what would have been read before it."""
    answers = drawn(5, 6)
    whole = Read(CONFIGS["full"]).passes(answers, 100)
    again = Read(CONFIGS["full"])
    planned = list(again.reader.passes(answers, 100))
    places, *last = planned[-1]
    assert dict(zip(places, again.reader.read(*last), strict=True)) == whole[-1]
    assert sorted(place for part in whole for place in part) == list(range(len(answers)))
