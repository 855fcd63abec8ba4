"""Answers to an evaluation's prompts: turns, samples, temperatures, and what a kill must not change."""

from __future__ import annotations

import json
import math
import shutil
import uuid

import pytest
import torch
from hand_pipeline import killed_when, run_here

from steerboard_contracts.stage.inputs import PromptsInput
from steerboard_workers.engines.log_probs import AnswerLogProbs
from steerboard_workers.stages import answer
from steerboard_workers.stages.models import log_ratios
from steerboard_workers.stages.models.model_io import load_policy

IDS = {"evaluation": str(uuid.UUID(int=1)), "entrant": str(uuid.UUID(int=2))}
GREEDY = {"run": "answer", **IDS, "decoding": {"max_new_tokens": 10}, "batch_size": 8}
SAMPLED = {**GREEDY, "decoding": {"temperature": 1.0, "max_new_tokens": 10}, "samples": 2, "seed": 5}
# Many draws, for models so barely trained that few of them depend on what was asked.
LONG = {**SAMPLED, "decoding": {"temperature": 1.0, "max_new_tokens": 80}}
QUESTIONS = ["How can I grow tomatoes?", "Where is the river?", "What is a good book about cooking?"]


def prompt(position, question, *follow_ups, category=None, system=None):
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": question})
    return {"position": position, "category": category, "messages": messages, "follow_ups": list(follow_ups)}


@pytest.fixture
def ask(pipeline):
    """Run the stage on prompts; its responses by (position, sample)."""
    made = []

    def asked(prompts, config, model="sft", *, start=True, **inputs):
        path = pipeline.directory / f"prompts-{len(made)}.jsonl"
        path.write_text("".join(json.dumps(item) + "\n" for item in prompts))
        pipeline.things["prompts"] = PromptsInput(name="mine", path=str(path), prompts=len(prompts))
        folder = pipeline.prepare(f"answers-{len(made)}", config, {"model": model, "prompts": "prompts", **inputs})
        made.append(folder)
        return responses(folder) if start else folder

    return asked


def responses(folder):
    last = json.loads(run_here(folder)[-1])
    assert last["type"] == "succeeded", last
    (output,) = last["outputs"]
    rows = [json.loads(line) for line in (folder / output["path"]).read_text().splitlines()]
    assert output["rows"] == len(rows)
    by_place = {(row["position"], row["sample"]): row for row in rows}
    assert len(by_place) == len(rows)
    return by_place


def texts(answers):
    return {place: row["turns"] for place, row in answers.items()}


def test_every_prompt_is_answered_in_all_its_turns(ask):
    answers = ask([prompt(0, QUESTIONS[0], "Why?"), prompt(1, QUESTIONS[1]), prompt(4, QUESTIONS[2], "A", "B")], GREEDY)
    assert {place: len(row["turns"]) for place, row in answers.items()} == {(0, 0): 2, (1, 0): 1, (4, 0): 3}
    assert all(len(row["tokens"]) == len(row["finished"]) == len(row["turns"]) for row in answers.values())


def test_the_second_answer_follows_from_the_first(ask):
    first, second = ask([prompt(0, QUESTIONS[0], "Tell me more.")], SAMPLED)[(0, 0)]["turns"]
    turns = [
        {"role": "user", "content": QUESTIONS[0]},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "Tell me more."},
    ]
    asked_at_once = {"position": 0, "category": None, "messages": turns, "follow_ups": []}
    same_draws = {**SAMPLED, "samples": 1, "seed": SAMPLED["seed"] + (1 << 32)}
    assert ask([asked_at_once], same_draws)[(0, 0)]["turns"] == [second]
    assert ask([prompt(0, "Tell me more.")], same_draws)[(0, 0)]["turns"] != [second]


def test_a_system_message_is_part_of_the_prompt(ask):
    plain = ask([prompt(0, QUESTIONS[0])], LONG)
    assert texts(ask([prompt(0, QUESTIONS[0], system="Answer in French, please.")], LONG)) != texts(plain)


def test_samples_differ_and_greedy_ones_are_equal_each_time(ask):
    prompts = [prompt(at, question, "Why?") for at, question in enumerate(QUESTIONS)]
    sampled = ask(prompts, SAMPLED)
    assert sorted(sampled) == [(at, sample) for at in range(3) for sample in range(2)]
    for at in range(3):
        for turn in range(2):
            assert sampled[(at, 0)]["turns"][turn] != sampled[(at, 1)]["turns"][turn]
    assert texts(ask(prompts, {**SAMPLED, "seed": 6})) != texts(sampled)
    assert texts(ask(prompts, GREEDY)) == texts(ask(prompts, {**GREEDY, "seed": 6}))


def test_batches_change_no_answer(ask):
    prompts = [prompt(at, question, "Why?") for at, question in enumerate(QUESTIONS)]
    assert texts(ask(prompts, {**SAMPLED, "batch_size": 1})) == texts(ask(prompts, {**SAMPLED, "batch_size": 64}))


def test_the_turns_of_a_sample_have_randomness_of_their_own(ask):
    """The same prompt as a first and as a second turn: an equal seed must not give an equal answer."""
    (first, second) = ask([prompt(0, QUESTIONS[0], QUESTIONS[0])], SAMPLED)[(0, 0)]["turns"]
    assert first != second


def test_a_category_may_have_a_temperature_of_its_own(ask):
    prompts = [prompt(0, QUESTIONS[0], category="math"), prompt(1, QUESTIONS[1], category="writing")]
    answers = texts(ask(prompts, {**SAMPLED, "temperatures": {"math": 0.0}}))
    greedy = texts(ask(prompts, GREEDY))
    assert answers[(0, 0)] == answers[(0, 1)] == greedy[(0, 0)]
    assert answers[(1, 0)] != answers[(1, 1)]


def test_a_score_decides_the_answers_and_others_refuse_it(ask):
    prompts = [prompt(at, question) for at, question in enumerate(QUESTIONS)]
    high, low = (texts(ask(prompts, {**LONG, "score": score}, "dt")) for score in (5.0, -5.0))
    assert high != low
    last = json.loads(run_here(ask(prompts, {**GREEDY, "score": 5.0}, start=False))[-1])
    assert (last["type"], last["code"]) == ("failed", "no_score_format")


@pytest.mark.long
def test_a_killed_stage_goes_on_in_its_second_turn_with_the_same_answers(ask):
    config = {**SAMPLED, "batch_size": 2, "decoding": {"temperature": 1.0, "max_new_tokens": 40}}
    prompts = [prompt(at, f"{QUESTIONS[at % 3]} {at}", "Why?") for at in range(16)]
    undisturbed = ask(prompts, config)
    folder = ask(prompts, config, start=False)
    kept = folder / "checkpoints" / "a1-rows.jsonl"
    killed_when(lambda: kept.is_file() and b'"turn": 1' in kept.read_bytes(), folder)
    assert not (folder / "outputs" / "responses.jsonl").exists()
    assert responses(folder) == undisturbed


def test_the_best_of_several_is_the_one_that_the_reward_model_scores_highest(ask, pipeline):
    prompts = [prompt(at, question) for at, question in enumerate(QUESTIONS)]
    config = {**LONG, "samples": 1, "best_of": 4}
    all_four = ask(prompts, {**LONG, "samples": 4})
    best = ask(prompts, config, reward="reward")
    assert sorted(best) == [(0, 0), (1, 0), (2, 0)]
    pipeline.dataset(
        "four",
        "labelled",
        [{"prompt": QUESTIONS[at], "response": row["turns"][0]} for (at, _), row in sorted(all_four.items())],
    )
    pipeline.run("scored", {"run": "score"}, {"data": "four", "reward": "reward"})
    rewards = [row["reward"] for row in pipeline.rows("scored")]
    for at in range(len(QUESTIONS)):
        own = rewards[4 * at : 4 * at + 4]
        assert max(own) > min(own)
        assert best[(at, 0)]["turns"] == all_four[(at, own.index(max(own)))]["turns"]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_ratios_average_to_the_exact_divergence_of_a_token(ask, pipeline, temperature):
    """Each model is asked as itself: the policy for its score, the other one for none."""
    prompts = [prompt(at, question) for at, question in enumerate(QUESTIONS)]
    decoding = {"temperature": temperature, "max_new_tokens": 1}
    answers = ask(prompts, {**SAMPLED, "decoding": decoding, "samples": 64, "score": -5.0}, "dt", kl_to="sft")
    for given in prompts:
        log_p, log_q = (
            (next_logits(pipeline, name, given, text) / temperature).log_softmax(-1)
            for name, text in (("dt", "-5.00"), ("sft", None))
        )
        ratio = log_p - log_q
        exact = float((log_p.exp() * ratio).sum())
        spread = float((log_p.exp() * (ratio - exact) ** 2).sum().sqrt())
        drawn = [answers[(given["position"], sample)]["log_ratio"] for sample in range(64)]
        assert exact > 0.001
        assert abs(sum(drawn) / 64 - exact) < 4 * spread / 8
        assert all(float((ratio - value).abs().min()) < 1e-4 for value in drawn), "each is that of a token"


def next_logits(pipeline, name, given, text):
    policy = load_policy(pipeline.things[name].path, "fp32", "cpu")
    ids = policy.renderer.prompt_ids(given["messages"], text)
    with torch.no_grad():
        return policy.model(torch.tensor([ids])).logits[0, -1].double()


def test_a_log_ratio_is_of_all_turns_and_a_second_attempt_computes_none_again(ask, pipeline, monkeypatch):
    prompts = [prompt(0, QUESTIONS[0], "Why?"), prompt(1, QUESTIONS[1])]
    monkeypatch.setattr(log_ratios, "BATCH_TOKENS", 90)
    folder = ask(prompts, SAMPLED, "dt", start=False, kl_to="sft")
    answers = responses(folder)
    drawn = [json.loads(line) for line in (folder / "checkpoints" / "a1-rows.jsonl").read_text().splitlines() if line]
    ids = {(row["position"], row["sample"], row["turn"]): row["ids"] for row in drawn}
    for (position, sample), row in answers.items():
        messages, ratio = list(prompts[position]["messages"]), 0.0
        for turn, text in enumerate(row["turns"]):
            for name, score, sign in (("dt", "5.00", 1), ("sft", None, -1)):
                policy = load_policy(pipeline.things[name].path, "fp32", "cpu")
                start, answer = policy.renderer.prompt_ids(messages, score), ids[(position, sample, turn)]
                with torch.no_grad():
                    logits = policy.model(torch.tensor([start + answer])).logits[0, len(start) - 1 : -1]
                ratio += sign * float(logits.log_softmax(-1).gather(1, torch.tensor(answer)[:, None]).sum())
            later = prompts[position]["follow_ups"][turn : turn + 1]
            messages += [{"role": "assistant", "content": text}, *({"role": "user", "content": q} for q in later)]
        assert row["log_ratio"] == pytest.approx(ratio, abs=1e-3)
    # One of the second model's passes is torn: that one is all that is computed.
    kept = folder / "checkpoints" / "log-probs-kl_to" / "a1-rows.jsonl"
    kept.write_text("".join(kept.read_text().rstrip().splitlines(keepends=True)[:-1]))
    passes = []
    real = AnswerLogProbs.read
    monkeypatch.setattr(AnswerLogProbs, "read", lambda *given: passes.append(given[2]) or real(*given))
    assert responses(folder) == answers
    assert len(passes) == 1
    assert len(passes[0]) < len(ids)
    itself = ask([prompts[0]], SAMPLED, "sft", kl_to="sft")
    assert {row["log_ratio"] for row in itself.values()} == {0.0}


def kept_rows(folder):
    """What was drawn, by (position, sample, turn)."""
    lines = (folder / "checkpoints" / "a1-rows.jsonl").read_text().splitlines()
    return {(row["position"], row["sample"], row["turn"]): row for row in map(json.loads, filter(None, lines))}


def by_plain_transformers(pipeline, name, prompt, turns, ids, text=None):
    """(log-prob, tokens) of all turns of one answer, each read alone and at temperature 1."""
    policy = load_policy(pipeline.things[name].path, "fp32", "cpu")
    messages, log_prob, tokens = list(prompt["messages"]), 0.0, 0
    for turn, drawn in enumerate(ids):
        start = policy.renderer.prompt_ids(messages, text)
        with torch.no_grad():
            logits = policy.model(torch.tensor([start + drawn])).logits[0, len(start) - 1 : -1].double()
        log_prob += float(logits.log_softmax(-1).gather(1, torch.tensor(drawn)[:, None]).sum())
        tokens += len(drawn)
        later = prompt["follow_ups"][turn : turn + 1]
        messages += [{"role": "assistant", "content": turns[turn]}, *({"role": "user", "content": q} for q in later)]
    return log_prob, tokens


NO_KL = {"estimates_kl": False}
WAYS = {
    "greedy": ({**GREEDY, **NO_KL}, "dt", {}),
    "sampled": (SAMPLED, "dt", {}),
    "hotter": ({**SAMPLED, "decoding": {"temperature": 1.7, "max_new_tokens": 10}}, "dt", {}),
    "top_p": ({**SAMPLED, **NO_KL, "decoding": {"temperature": 1.0, "top_p": 0.5, "max_new_tokens": 10}}, "dt", {}),
    "guided": ({**GREEDY, **NO_KL, "score": 5.0, "decoding": {"guidance": 3.0, "max_new_tokens": 10}}, "dt", {}),
    "itself": ({**GREEDY, **NO_KL}, "sft", {}),
    "best of 4": ({**SAMPLED, **NO_KL, "samples": 1, "best_of": 4}, "sft", {"reward": "reward"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_answers_have_the_log_prob_that_plain_transformers_give_them(ask, pipeline, way):
    """All ways of drawing them; answers that were cut, too."""
    config, model, inputs = WAYS[way]
    later = () if "best_of" in config else ("Why?",)
    prompts = [prompt(0, QUESTIONS[0], *later), prompt(1, QUESTIONS[1]), prompt(2, QUESTIONS[2])]
    folder = ask(prompts, config, model, start=False, kl_to="sft", **inputs)
    answers, drawn = responses(folder), kept_rows(folder)
    assert ("log_ratio" in next(iter(answers.values()))) == config.get("estimates_kl", True)
    for (position, sample), row in answers.items():
        samples = range(4) if "best_of" in config else [sample]
        # The chosen one is the drawn one of the same text.
        n = next(n for n in samples if drawn[(position, n, 0)]["text"] == row["turns"][0])
        ids = [drawn[(position, n, turn)]["ids"] for turn in range(len(row["turns"]))]
        log_prob, tokens = by_plain_transformers(pipeline, "sft", prompts[position], row["turns"], ids)
        assert row["log_prob_tokens"] == tokens
        perplexity, expected = (math.exp(-total / tokens) for total in (row["log_prob"], log_prob))
        assert perplexity == pytest.approx(expected, rel=1e-4)
        # The token that ends an answer counts, and is not there where the limit ended it.
        ends = sum(tokens_ == len(own) - 1 for tokens_, own in zip(row["tokens"], ids, strict=True))
        assert ends == sum(row["finished"])


def test_an_empty_answer_is_as_likely_as_its_end(ask, pipeline, monkeypatch):
    """One that ends at once has one token, and one without any has no log-prob."""
    prompts = [prompt(0, QUESTIONS[0]), prompt(1, QUESTIONS[1])]
    end = load_policy(pipeline.things["sft"].path, "fp32", "cpu").renderer.end_id
    monkeypatch.setattr(answer, "_drawn", lambda completion: [] if completion.row else [end])
    answers = ask(prompts, {**GREEDY, **NO_KL}, "dt", kl_to="sft")
    expected, _ = by_plain_transformers(pipeline, "sft", prompts[0], [""], [[end]])
    assert answers[(0, 0)]["log_prob"] == pytest.approx(expected, abs=1e-4)
    assert answers[(0, 0)]["log_prob_tokens"] == 1
    assert "log_prob" not in answers[(1, 0)]


def test_only_the_chosen_answer_is_read(ask, monkeypatch):
    read = []
    real = AnswerLogProbs.read
    monkeypatch.setattr(AnswerLogProbs, "read", lambda *given: read.extend(given[2]) or real(*given))
    prompts = [prompt(at, question) for at, question in enumerate(QUESTIONS)]
    config, model, inputs = WAYS["best of 4"]
    ask(prompts, config, model, kl_to="sft", **inputs)
    assert len(read) == len(prompts)
    # At temperature 1 the log-ratios have read them already: once by each model.
    read.clear()
    ask(prompts, {**SAMPLED, "samples": 1}, "dt", kl_to="sft")
    assert len(read) == 2 * len(prompts)


def test_a_model_of_other_tokens_is_refused(ask, pipeline, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(pipeline.things["sft"].path, folder)
    tokens = json.loads((folder / "tokenizer.json").read_text())
    words = tokens["model"]["vocab"]
    a, b = list(words)[-2:]
    words[a], words[b] = words[b], words[a]
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    pipeline.things["other"] = pipeline.things["sft"].model_copy(update={"path": str(folder), "name": "other"})
    last = json.loads(run_here(ask([prompt(0, QUESTIONS[0])], SAMPLED, start=False, kl_to="other"))[-1])
    assert (last["type"], last["code"]) == ("failed", "tokenizer_differs")
    assert "than the entrant" in last["detail"]
    # Without an estimate there is only the perplexity to lose.
    folder = ask([prompt(0, QUESTIONS[0])], {**GREEDY, **NO_KL}, start=False, kl_to="other")
    said = [json.loads(line) for line in run_here(folder)]
    assert said[-1]["type"] == "succeeded"
    why = "the answers get no perplexity: other, the input kl_to, has another tokenizer than the entrant"
    assert any(line.get("message", "").startswith(why) for line in said)
    assert "log_prob" not in responses(folder)[(0, 0)]
