"""Rollouts of several turns: what was sampled is learned, observations are not, and limits cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.environment_protocol import EnvironmentFailed
from steerboard_workers.alignment.online.episodes import Episodes, turn_metrics
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rollouts import Rollout, TurnOfRollout
from steerboard_workers.phases import Phases
from support.environments import FOLDER, environment, of_file
from support.models.template_families import FAMILIES, tokenizer_of
from support.models.tool_templates import TOOL_TEMPLATES, tool_tokenizer_of

QUESTION = [{"role": "user", "content": "How many?"}]


class Scripted:
    """A policy whose answers are a function of the text before them and their number."""

    def __init__(self, renderer: Renderer, answer: Callable[[str, int], str]) -> None:
        self._renderer, self._answer = renderer, answer
        self.seen: list[tuple[int, list[int]]] = []

    def sample(self, step, prompts, *, answers=1, temperature=1.0, max_new_tokens=None):
        tokenizer, groups = self._renderer.tokenizer, []
        for prompt in prompts:
            self.seen.append((step, prompt.prompt.tolist()))
            read = tokenizer.decode(prompt.prompt.tolist())
            texts = [self._answer(read, n) for n in range(answers)]
            groups.append([self._rollout(prompt.row, n, text, max_new_tokens) for n, text in enumerate(texts)])
        return groups

    def _rollout(self, row, n, text, most):
        ids = [*self._renderer.tokenizer(text, add_special_tokens=False)["input_ids"], self._renderer.end_id]
        finished = most is None or len(ids) <= most
        kept = np.array(ids[:most], dtype=np.int32)
        return Rollout(row, n, kept, -np.arange(len(kept), dtype=np.float32), text, finished)


def episodes(
    renderer: Renderer, named: dict, prompts: dict | None = None, references=None, folder=FOLDER, **config
) -> Episodes:
    settings = needed_method("rloo").config.model_validate({"method": "rloo", "environment": named, **config})
    texts = RowTexts(references or {}, prompts or {7: QUESTION})
    access = RewardAccess(folders=LocalFolders(roots=(folder,)))
    return Episodes(settings, settings.environment, texts, renderer, Phases(), access)


def sampled(renderer, named, answer, *, answers=1, prompt=QUESTION, reference="8", folder=FOLDER, **config):
    policy = Scripted(renderer, answer)
    given = episodes(renderer, named, {7: prompt}, {7: reference}, folder, **config)
    asked = Example(7, np.array(renderer.prompt_ids(prompt), dtype=np.int32), ())
    prompts, (group,) = given.sample(policy, 3, [asked], seeds=3, answers=answers, temperature=1.0)
    return prompts[0], group, policy


def bisected(read: str, n: int) -> str:
    low, high = 1, 20
    for guess, hint in re.findall(r"(\d+)[^\d]*?(Higher|Lower)", read.partition("20.")[2]):
        low, high = (int(guess) + 1, high) if hint == "Higher" else (low, int(guess) - 1)
    return str((low + high) // 2)


def test_a_number_is_guessed_in_turns_and_the_hit_ends_the_rollout():
    renderer = Renderer(tokenizer_of("chatml"), "chat", 4096)
    _, group, policy = sampled(renderer, environment("guess", max_turns=8), bisected, answers=2)
    for rollout in group:
        assert rollout.ended
        assert rollout.finished
        assert rollout.reward == 1.0
        assert len(rollout.turns) <= 5
        assert [turn.reward for turn in rollout.turns] == [0.0] * (len(rollout.turns) - 1) + [1.0]
    # Both rollouts of a row have the same number to find, and turns of one sampling draw by numbers of their own.
    assert [turn.text for turn in group[0].turns] == [turn.text for turn in group[1].turns]
    assert len({step for step, _ in policy.seen}) == len(group[0].turns)
    metrics = turn_metrics(group)
    assert metrics["turns"] == len(group[0].turns)
    assert metrics["ended_by_environment"] == 1.0
    assert metrics[f"reward_turn_{len(group[0].turns)}"] == 1.0


def test_the_example_of_the_page_is_an_environment(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
    file = tmp_path / "guess.py"
    file.write_text(page.partition("```python\n")[2].partition("```")[0])
    renderer = Renderer(tokenizer_of("chatml"), "chat", 4096)
    _, (rollout,), _ = sampled(renderer, of_file(file, max_turns=8), bisected, folder=tmp_path)
    assert rollout.ended
    assert rollout.reward == 1.0


TOOLS = {f"tools of {name}": lambda name=name: tool_tokenizer_of(name) for name in TOOL_TEMPLATES}
PLAIN = {name: lambda name=name: tokenizer_of(name) for name in FAMILIES if "thinking" not in name}


@pytest.mark.parametrize("name", TOOLS)
def test_a_calculator_is_called_as_a_tool_and_the_last_answer_is_rewarded(name):
    renderer = Renderer(TOOLS[name](), "chat", 4096)
    prompt = [{"role": "user", "content": "Sum of two and five and one?"}]
    answers = iter(['{"name": "add", "arguments": {"a": 2, "b": 5}}', '{"arguments": {"a": 7, "b": 1}}', "8"])
    opened, (rollout,), _ = sampled(renderer, environment("calculator"), lambda *_: next(answers), prompt=prompt)
    assert rollout.ended
    assert rollout.reward == 1.0
    assert [turn.reward for turn in rollout.turns] == [None, None, 1.0]
    assert [turn.observation[0]["content"] for turn in rollout.turns[:-1]] == ["7", "8"]
    example = rollout.answered(opened)
    text = renderer.tokenizer.decode(example.prompt.tolist())
    assert "properties" in text  # the tools of its first turn
    learned = renderer.tokenizer.decode(example.prompt[example.prompt_supervised].tolist())
    assert learned.count("arguments") == 2
    assert "properties" not in learned


@pytest.mark.parametrize("name", PLAIN)
def test_the_tokens_of_a_rollout_are_those_that_transformers_writes_for_its_conversation(name):
    """This holds for families whose template writes closed turns as it opened them."""
    tokenizer = PLAIN[name]()
    renderer = Renderer(tokenizer, "chat", 4096)
    answers = iter(["SELECT 3", "ANSWER: 3"])
    opened, (rollout,), _ = sampled(renderer, environment("sql"), lambda *_: next(answers), reference="3")
    assert rollout.ended
    assert rollout.reward == 1.0
    example = rollout.answered(opened)
    ids = [*example.prompt.tolist(), *example.responses[0].tolist()]
    own = [*example.prompt_supervised.tolist(), *[True] * len(example.responses[0])]
    assert [i for i, on in zip(ids, own, strict=True) if on] == rollout.ids.tolist()
    if not FAMILIES[name].sentencepiece:
        messages = [
            *QUESTION,
            {"role": "assistant", "content": "SELECT 3"},
            {"role": "user", "content": "[(3,)]"},
            {"role": "assistant", "content": "ANSWER: 3"},
        ]
        whole = tokenizer(tokenizer.apply_chat_template(messages, tokenize=False), add_special_tokens=False)
        # A thought that the generation prompt opens is not in closed conversations.
        if "<think>" not in tokenizer.decode([*ids, *whole["input_ids"]]):
            assert ids == whole["input_ids"][: len(ids)]


def test_queries_are_answered_by_their_rows_and_errors_by_their_text():
    renderer = Renderer(tokenizer_of("llama-3"), "chat", 4096)
    answers = iter(["SELECT name FROM towns", "SELECT name FROM cities WHERE people < 2", "ANSWER: Oslo"])
    _, (rollout,), _ = sampled(renderer, environment("sql"), lambda *_: next(answers), reference="Oslo")
    assert rollout.turns[0].observation[0]["content"] == "error: no such table: towns"
    assert rollout.turns[1].observation[0]["content"] == "[('Oslo',)]"
    assert rollout.reward == pytest.approx(0.9)
    np.testing.assert_allclose(rollout.early_rewards(2.0)[rollout.early_rewards(2.0) != 0], [-0.2])
    assert np.flatnonzero(rollout.early_rewards(2.0)).tolist() == [rollout.turns[0].tokens - 1]


@pytest.mark.parametrize(
    ("limits", "turns", "finished"),
    [
        ({"max_turns": 3}, 3, True),
        ({"max_tokens": 40}, 2, False),
        ({}, 1, False),
    ],
    ids=["turns", "tokens", "an answer"],
)
def test_a_limit_ends_a_rollout_and_no_end_token_is_made_up(limits, turns, finished):
    renderer = Renderer(tokenizer_of("chatml"), "chat", 4096)
    named = environment("guess", **{"max_turns": 9, **limits})
    most = 2 if not limits else None
    _, (rollout,), _ = sampled(renderer, named, lambda *_: "no idea", max_new_tokens=most)
    assert len(rollout.turns) == turns
    assert rollout.finished is finished
    assert not rollout.ended
    assert rollout.reward == pytest.approx(-0.1 * turns)
    assert len(rollout.turns[-1].after) == 0
    if not limits:
        assert len(rollout.ids) == 2
        assert renderer.end_id not in rollout.ids


def test_the_window_ends_a_rollout_before_it_overflows():
    renderer = Renderer(tokenizer_of("chatml"), "chat", 96)
    _, (rollout,), policy = sampled(
        renderer, environment("guess", max_turns=60), lambda *_: "no idea", max_new_tokens=8
    )
    assert not rollout.finished
    assert 1 < len(rollout.turns) < 60
    assert max(len(ids) for _, ids in policy.seen) < 96


def test_rollouts_of_a_row_that_begin_differently_are_refused(tmp_path):
    file = tmp_path / "differs.py"
    file.write_text(
        "import random\nclass Environment:\n    def reset(self, row): return str(random.random())\n"
        "    def step(self, answer): return None, 0, True\n"
    )
    renderer = Renderer(tokenizer_of("chatml"), "chat", 4096)
    config = needed_method("rloo").config.model_validate({"method": "rloo", "environment": of_file(file)})
    access = RewardAccess(folders=LocalFolders(roots=(tmp_path,)))
    given = Episodes(config, config.environment, RowTexts({}, {7: QUESTION}), renderer, Phases(), access)
    asked = Example(7, np.array(renderer.prompt_ids(QUESTION), dtype=np.int32), ())
    with pytest.raises(EnvironmentFailed, match="two different prompts for row 7"):
        given.sample(Scripted(renderer, lambda *_: "a"), 0, [asked], seeds=0, answers=2, temperature=1.0)


def test_a_turns_reward_comes_with_its_last_token_and_all_else_with_the_last():
    turns = (TurnOfRollout(2, "a", 1.0), TurnOfRollout(1, "b", None), TurnOfRollout(2, "c", 3.0))
    rollout = Rollout(7, 0, np.arange(5, dtype=np.int32), np.zeros(5, np.float32), "c", True, turns)
    # 0.5 x (1 + 3), over the sd 2 of a run that normalises, less a penalty of 0.25.
    answers = Answers(np.array([[0.75]]), [np.zeros(5)], moments=(0.0, 2.0), early=[rollout.early_rewards(0.5)])
    np.testing.assert_allclose(answers.placed[0], [0, 0.25, 0, 0, 0.5])
