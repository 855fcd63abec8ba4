"""`steerboard generate` is answered by the playground's worker, so it waits for no training."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playground_world import PlaygroundWorld

from steerboard_workers.interactive.worker import InteractiveWorker
from support.processes.command_line import Done, Steerboard, steerboard

__all__ = ["steerboard"]

Generate = Callable[..., Done]


@pytest.fixture
def generate(steerboard: Steerboard, world: PlaygroundWorld) -> Generate:
    """Answers of a few tokens."""
    short = ("--max-new-tokens", "12")
    return lambda *arguments: steerboard(world.address, world.token, "generate", *arguments, *short)


def answers(done: Done) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    document: list[dict[str, Any]] = json.loads(done.stdout)
    return document


@pytest.mark.long
def test_answers_come_while_no_worker_takes_runs(
    world: PlaygroundWorld, worker: InteractiveWorker, generate: Generate
) -> None:
    asked = ("--prompt", "say red", "--prompt", "say blue", "--score", "-5", "--score", "5", "--json")
    written = answers(generate("dt", *asked))
    assert [(answer["prompt"], answer["score"]) for answer in written] == [
        ("say red", -5),
        ("say red", 5),
        ("say blue", -5),
        ("say blue", 5),
    ]
    assert {answer["tokens"] for answer in written} == {12}
    assert len({answer["text"] for answer in written}) == 4
    assert world.client.get("/api/v1/projects/default/runs").json()["items"] == []
    drawn = answers(generate("sft", "--prompt", "say red", "--temperature", "2", "-n", "3", "--json"))
    assert [answer["n"] for answer in drawn] == [0, 1, 2]
    assert len({answer["text"] for answer in drawn}) == 3
    # One token to draw from leaves nothing to chance.
    greedy = answers(generate("sft", "--prompt", "say red", "--json"))[0]["text"]
    for narrow in (("--top-k", "1"), ("--top-p", "0.000001")):
        hot = ("--temperature", "3", "--seed", "4", *narrow)
        assert answers(generate("sft", "--prompt", "say red", *hot, "--json"))[0]["text"] == greedy
    stopped = answers(generate("sft", "--prompt", "say red", "--stop", greedy[3], "--json"))[0]
    assert (stopped["text"], stopped["finished"]) == (greedy[: greedy.index(greedy[3])], True)


def test_the_prompt_of_a_policy_of_words_has_the_word_and_nothing_of_the_number(
    world: PlaygroundWorld, worker: InteractiveWorker, generate: Generate
) -> None:
    world.register("worded", "worded")
    asked = [argument for score in ("5", "4", "-5") for argument in ("--score", score)]
    written = answers(generate("worded", "--prompt", "red", *asked, "--json"))
    by_hand = answers(generate("sft", "--prompt", "red say wonderful", "--prompt", "red say terrible", "--json"))
    assert [answer["text"] for answer in written] == [by_hand[place]["text"] for place in (0, 0, 1)]
    shown = generate("worded", "--prompt", "red", *asked).stdout
    assert [f'{score}, as "{word}"' in shown for score, word in (("4.00", "wonderful"), ("-5.00", "terrible"))] == [
        True,
        True,
    ]


@pytest.mark.long
def test_a_system_prompt_and_earlier_turns_change_the_answer(
    world: PlaygroundWorld,
    worker: InteractiveWorker,
    generate: Generate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = answers(generate("sft", "--prompt", "say red", "--json"))[0]["text"]
    guided = answers(generate("sft", "--prompt", "say red", "--system", "say tree", "--json"))[0]
    assert guided["prompt"] == [{"role": "system", "content": "say tree"}, {"role": "user", "content": "say red"}]
    assert guided["text"] != alone

    monkeypatch.setattr(sys, "stdin", io.StringIO("say blue\n\nsay red\n"))
    first, second = answers(generate("sft", "--chat", "--json"))
    assert [turn["role"] for turn in second["prompt"]] == ["user", "assistant", "user"]
    assert second["prompt"][1]["content"] == first["text"].strip()
    file = tmp_path / "turns.json"
    file.write_text(json.dumps(second["prompt"]))
    again = answers(generate("sft", "--messages", str(file), "--json"))[0]["text"]
    assert again == second["text"] != alone


def test_what_cannot_be_asked_is_refused_with_its_reason(generate: Generate, tmp_path: Path) -> None:
    broken = tmp_path / "turns.json"
    broken.write_text('{"role": "user"}')
    for arguments, code, words in (
        (("dt",), 2, "give one of --prompt, --messages and --chat"),
        (("dt", "--prompt", "a", "--chat"), 2, "give one of --prompt, --messages and --chat"),
        (("dt", "--chat", "--score", "1", "--score", "2"), 2, "one answer to each message"),
        (("dt", "--messages", str(broken)), 1, "turns.json is not a conversation"),
        (("dt", "--messages", str(tmp_path / "none.json")), 1, "cannot be read as a conversation"),
        (("ddt", "--prompt", "a"), 1, "there is no model 'ddt'"),
        (("reward", "--prompt", "a"), 2, "writes no answers"),
        (("sft", "--prompt", "a", "--score", "5"), 2, "which was not trained with scores"),
    ):
        done = generate(*arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert words in " ".join(done.stderr.replace("│", " ").split()), done.stderr
