"""KTO's loss, its reference point and its mismatched answers, against closed forms and TRL 1.16."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.kto import KtoConfig
from steerboard_workers.alignment.batches.batch_source import check_state, digest, pack_examples, unpack_examples
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.batches.mismatch import mismatched, partners
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.methods.kto import Kto, KtoObjective, kto
from steerboard_workers.alignment.modules import PolicyModule


@pytest.mark.parametrize(
    ("ratio", "weight", "z", "loss"),
    [
        (0.7, 1.0, 0.2, 0.487503),
        (-0.4, -1.0, 0.2, 0.485004),
        (0.0, 1.0, 0.0, 0.5),
        (0.0, -1.0, 0.0, 0.5),
        (0.7, 1.5, 0.2, 1.5 * 0.487503),
        (-0.4, -0.25, 0.2, 0.25 * 0.485004),
    ],
)
def test_the_loss_of_an_answer(ratio, weight, z, loss):
    value = kto(torch.tensor([ratio]), torch.tensor(z), torch.tensor([weight]), 0.1)
    assert value.item() == pytest.approx(loss, abs=1e-6)


@given(prompts=st.lists(st.integers(0, 6), min_size=1, max_size=40))
@settings(max_examples=200)
def test_a_partner_answers_another_prompt(prompts):
    partner_of = partners(prompts)
    if len(set(prompts)) == 1:
        assert partner_of is None
        return
    assert partner_of == partners(prompts)
    assert all(prompts[other] != prompt for other, prompt in zip(partner_of, prompts, strict=True))
    if 2 * max(Counter(prompts).values()) <= len(prompts):
        assert sorted(partner_of) == list(range(len(prompts)))
    else:  # and then those that there are take turns
        uses = Counter(partner_of)
        frequent = Counter(prompts).most_common(1)[0][0]
        of_others = [uses[place] for place, prompt in enumerate(prompts) if prompt != frequent]
        assert max(of_others) - min(of_others) <= 1


def test_partners_of_pairs_are_spread_over_the_data():
    partner_of = partners([place // 2 for place in range(2000)])
    steps = [abs(other - place) for place, other in enumerate(partner_of)]
    assert 500 < sum(steps) / len(steps) < 900  # of places drawn at random: a third of 2000
    assert len(set(steps)) > 500


def test_a_mismatched_answer_is_cut_to_the_window():
    one, two = (Example(row, np.arange(5, dtype=np.int32), (np.arange(9, dtype=np.int32),)) for row in (3, 4))
    cut = mismatched(one, two, 8)
    assert (cut.row, cut.lengths) == (3, (8,))
    assert mismatched(one, two, 100).responses[0].tolist() == two.responses[0].tolist()


def method(**config) -> Kto:
    return Kto(KtoConfig(method="kto", **config))


class Dataset:
    name = "thumbs"
    normaliser = None


def thumb(prompt: str, response: str, desirable: bool, **more) -> dict:
    return {"prompt": [{"role": "user", "content": prompt}], "response": response, "desirable": desirable} | {
        "split": "train",
        **more,
    }


def pair(prompt: str, chosen: str, rejected: str, **more) -> dict:
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected, "split": "train", **more}


def test_a_pair_is_two_answers_and_rows_left_out_are_counted():
    rows = [
        pair("a", "x", "y", row=5),
        pair("b", "x", " x\n"),
        pair("c", "x", " "),
        pair("d", "x", "y", split="held_out", margin=0.0),
    ]
    selection = method().select(rows, Dataset())
    assert [(row["row"], row["response"], row["desirable"]) for row in selection.rows] == [
        (5, "x", True),
        (5, "y", False),
        (2, "x", True),
        (3, "x", True),
        (3, "y", False),
    ]
    assert selection.summary == {
        "empty_answers": 1,
        "equal_pairs": 1,
        "tied_pairs": 1,
        "desirable": 2,
        "undesirable": 1,
    }
    assert selection.notes[1] == "4 pairs became 5 answers"


def test_pairs_of_sides_that_are_equal_where_they_were_cut_are_left_out_of_both_splits():
    """Their prompts, too, have to be cut alike. Companions that had to be cut are counted."""
    rows = [pair(str(n), "x", "y", row=n, split="held_out" if n > 3 else "train") for n in range(6)]
    kto = method()
    kto.select(rows, Dataset())
    answers = {0: ((7, 8), (7, 8)), 1: ((7, 8), (7, 9)), 2: ((1,), (2, 3, 4)), 3: ((5,), (6,))}
    answers |= {4: ((7, 8), (7, 8)), 5: ((5,), (6,))}
    of_row = {
        row: [example(row, *tokens, weight=weight) for tokens, weight in zip(sides, (1.0, -1.0), strict=True)]
        for row, sides in answers.items()
    }
    # The second prompt of row 3 was cut, so that its sides differ though their answers are the same.
    of_row[3] = [example(3, 5), replace(example(3, 5, weight=-1.0), prompt=np.array([9], dtype=np.int32))]
    train = [item for row in range(4) for item in of_row[row]]
    held_out = [*of_row[4], *of_row[5]]
    room = len(of_row[1][0].prompt) + 2
    kto.relate(train, held_out, room)
    assert [item.row for item in train] == [1, 1, 2, 2, 3, 3]
    assert [item.row for item in held_out] == [5, 5]
    counts = kto.summary({}, 0)
    assert counts["equal_pairs"] == 2
    assert (counts["desirable"], counts["undesirable"]) == (3, 3)
    long = [item for item in (*train, *held_out) if item.companion.responses[0].tolist() == [2, 3]]
    assert counts["cut_companions"] == len(long) > 0


@pytest.mark.parametrize(
    ("rows", "config", "warning"),
    [
        ((3, 3), {}, None),
        ((4, 3), {}, None),
        ((3, 4), {}, "lambda_desirable from 1.33 to 1.78"),
        ((3, 4), {"lambda_desirable": 1.5}, None),
        ((30, 3), {"lambda_undesirable": 8.0}, None),
        ((30, 3), {"lambda_undesirable": 5.0}, "lambda_desirable from 0.5 to 0.667"),
        ((3, 3), {"lr": 5e-6}, "up to about 1e-06"),
        ((3, 3), {"lr": 5e-6, "lora": {}}, None),
    ],
)
def test_weights_and_rates_out_of_the_recommended_range_are_warned_of(rows, config, warning):
    good, bad = rows
    given = [thumb(str(n), "yes", n < good) for n in range(good + bad)]
    warnings = method(**config).select(given, Dataset()).warnings
    assert (warning is None and not warnings) or warning in warnings[0]


@pytest.mark.parametrize("desirable", [True, False])
def test_data_of_one_class_is_refused(desirable):
    rows = [thumb("a", "x", desirable), thumb("b", "x", not desirable, split="held_out")]
    with pytest.raises(BadInput) as refused:
        method().select(rows, Dataset())
    assert refused.value.code == "one_sided_data"


@pytest.mark.parametrize(("weight", "have"), [(1.0, "desirable"), (-1.0, "undesirable")])
def test_data_of_which_one_class_is_too_long_or_equal_where_cut_is_refused(weight, have):
    """The first row fits with one answer only, the sides of the second are cut to the same."""
    rows = [pair("a", "x", "y", row=0), pair("b", "x", "y", row=1), pair("c", "x", "y", row=2, split="held_out")]
    kto = method(too_long="truncate")
    kto.select(rows, Dataset())
    train = [example(0, 5, weight=weight), example(1, 7), example(1, 7, weight=-1.0)]
    with pytest.raises(BadInput, match=f"all 1 training rows that are left of thumbs are {have}") as refused:
        kto.relate(train, [example(2, 5), example(2, 6, weight=-1.0)], 4)
    assert refused.value.code == "one_sided_data"
    assert "1 do not fit into 4 tokens and 1 are in pairs whose sides are equal" in refused.value.detail


def test_data_of_another_kind_is_refused():
    with pytest.raises(BadInput, match="row 1") as refused:
        method().select([thumb("a", "x", True), {"prompt": "b", "response": "x", "reward": 1.0}], Dataset())
    assert refused.value.code == "wrong_dataset_kind"
    assert "convert thumbs pairs_from_ranks | best_against_worst | thumbs_from_scores`" in refused.value.hint


def example(row: int, *ids: int, weight: float = 1.0) -> Example:
    return Example(row, np.array([1, 2, row], dtype=np.int32), (np.array(ids, dtype=np.int32),), weight=weight)


def related(prompts: list[str], held_out: int) -> tuple[list[Example], list[Example]]:
    """Examples of rows with these prompts, the last `held_out` of them held out; row n has the answer 100 + n."""
    learner = method()
    places = [("train", "held_out")[n >= len(prompts) - held_out] for n in range(len(prompts))]
    rows = [
        thumb(prompt, "x", n % 2 == 0, split=split)
        for n, (prompt, split) in enumerate(zip(prompts, places, strict=True))
    ]
    learner.select(rows, Dataset())
    examples = [example(n, 100 + n, weight=1.0 if n % 2 == 0 else -1.0) for n in range(len(prompts))]
    train, rest = examples[: len(prompts) - held_out], examples[len(prompts) - held_out :]
    learner.relate(train, rest, 64)
    return train, rest


def answered_by(example: Example) -> int:
    assert example.companion.prompt is example.prompt
    return int(example.companion.responses[0][0]) - 100


def test_held_out_rows_get_held_out_answers_to_other_prompts():
    prompts = ["a", "a", "b", "c", "b", "c", "d", "d", "e", "e"]
    train, held_out = related(prompts, 4)
    for part, rows in ((train, range(6)), (held_out, range(6, 10))):
        for item in part:
            assert answered_by(item) in rows
            assert prompts[answered_by(item)] != prompts[item.row]


def test_one_held_out_prompt_gets_answers_of_training_rows():
    _, held_out = related(["a", "b", "c", "d", "z", "z"], 2)
    assert all(answered_by(item) < 4 for item in held_out)


def test_training_rows_of_one_prompt_are_refused():
    with pytest.raises(BadInput) as refused:
        related(["a", "a", "b"], 1)
    assert refused.value.code == "one_prompt"


class Tabular:
    """`Passes` over a table of logits (prompts, answers): a prompt is its number, and an answer one token."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits

    def per_sequence(self, examples, model=None):
        table = self.logits.detach().double().log_softmax(-1)
        return [np.array([table[int(e.prompt[-1]), int(e.responses[0][0])]]) for e in examples]


class Micro:
    """A micro-batch, as far as the objective looks at it."""

    def __init__(self, examples, prepared) -> None:
        self.label_counts = torch.tensor([float(e.labels) for e in examples])
        self.weights = torch.tensor([e.weight for e in examples])
        self.frozen_log_probs = {
            "reference": torch.tensor([float(e.frozen_log_probs["reference"][0]) for e in examples])
        }
        self.prepared = prepared


def of_table(reference: torch.Tensor, prompt: int, answer: int, weight: float, other: int) -> Example:
    table = reference.log_softmax(-1)

    def of_token(token: int) -> Example:
        values = {"reference": np.array([table[prompt, token]], dtype=np.float32)}
        return replace(example(0, token, weight=weight), prompt=np.array([prompt]), frozen_log_probs=values)

    return replace(of_token(answer), companion=of_token(other))


def test_a_tabular_policy_converges_to_the_stationary_point():
    """Each prompt's pi(y) = w_y s_y / sum of them, with w_y the net weight of an answer's labels, s_y the slope of
    sigma at beta (h_y - z), and z of the policy itself: where the gradient of a softmax is zero."""
    beta = 1.0
    reference = torch.tensor([[0.2, -0.3, 0.0], [0.5, 0.0, -0.4]], dtype=torch.float64)
    desirable, undesirable = torch.tensor([[8.0, 2, 2], [7, 3, 2]]), torch.tensor([[2.0, 0, 1], [1, 0, 1]])
    lambdas = (1.0, 0.8)
    batch = []
    for prompt in range(2):
        for answer in range(3):
            for count, weight in ((desirable, lambdas[0]), (undesirable, -lambdas[1])):
                # The mismatched answers are those of the other prompt, as often as it has them.
                batch += [(prompt, answer, weight)] * int(count[prompt, answer])
    others = {p: [a for q, a, _ in batch if q != p] for p in range(2)}
    rows = [of_table(reference, p, a, w, others[p][n % len(others[p])]) for n, (p, a, w) in enumerate(batch)]
    objective = KtoObjective(beta)
    logits = reference.clone().requires_grad_()
    places = torch.tensor([[int(e.prompt[0]), int(e.responses[0][0])] for e in rows])
    optimiser = torch.optim.SGD([logits], lr=8.0)
    for _ in range(300):
        prepared = objective.prepare(rows, Tabular(logits))
        log_probs = logits.log_softmax(-1)[places[:, 0], places[:, 1]]
        loss, _ = objective.forward((log_probs, None), Micro(rows, prepared))
        optimiser.zero_grad()
        (loss / objective.count(rows)).backward()
        optimiser.step()
    assert logits.grad.abs().max() < 1e-6
    policy = logits.detach().softmax(-1)
    z = float(prepared["z"])
    assert z > 0.01
    h = policy.log() - reference.softmax(-1).log()
    net = lambdas[0] * desirable.double() - lambdas[1] * undesirable.double()
    slope = torch.sigmoid(beta * (h - z)) * torch.sigmoid(beta * (z - h))
    expected = net * slope / (net * slope).sum(-1, keepdim=True)
    torch.testing.assert_close(policy, expected, atol=1e-5, rtol=1e-4)
    assert (policy - reference.softmax(-1)).abs().max() > 0.1


def test_z_is_no_less_than_nothing_and_has_no_gradient():
    """A policy below its reference on mismatched answers reports a negative KL."""
    reference = torch.zeros(2, 3, dtype=torch.float64)
    rows = [of_table(reference, 0, 0, 1.0, 2), of_table(reference, 1, 1, -1.0, 2)]
    logits = torch.tensor([[1.0, 0, -1], [1, 0, -1]], dtype=torch.float64)
    prepared = KtoObjective(0.1).prepare(rows, Tabular(logits))
    assert prepared["kl"].item() == pytest.approx(float(logits.log_softmax(-1)[0, 2] + np.log(3)))
    assert prepared["kl"] < 0 == prepared["z"]
    assert not prepared["z"].requires_grad


def test_a_batch_of_one_answer_has_its_z_and_no_figures_of_the_other_class():
    reference = torch.zeros(2, 3, dtype=torch.float64)
    rows = [of_table(reference, 0, 0, 1.0, 2)]
    objective = KtoObjective(0.1)
    logits = torch.tensor([[0.0, 0, 1], [0, 0, 0]], dtype=torch.float64)
    prepared = objective.prepare(rows, Tabular(logits))
    log_probs = logits.log_softmax(-1)[0, :1].float()
    _, sums = objective.forward((log_probs, None), Micro(rows, prepared))
    figures = objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))
    z, h = logits.log_softmax(-1)[0, [2, 0]] + np.log(3)
    assert figures["loss"] == pytest.approx(torch.sigmoid(0.1 * (z - h)).item(), rel=1e-5)
    assert figures["z"] == pytest.approx(z.item(), rel=1e-5)
    assert figures["reward_desirable"] == pytest.approx(0.1 * h.item(), rel=1e-4)
    assert not any(name.endswith("undesirable") for name in figures)


def test_examples_with_companions_are_kept_whole_by_a_state():
    whole = replace(
        example(1, 5, 6), companion=example(1, 7), frozen_log_probs={"a": np.array([-1.0], dtype=np.float32)}
    )
    packed = pack_examples([whole, example(2, 8)])
    check_state(packed)
    first, second = unpack_examples(packed)
    assert digest(first) == digest(whole)
    assert first.companion.responses[0].tolist() == [7]
    assert second.companion is None
    assert digest(replace(whole, companion=None)) != digest(whole)


class Modules:
    """`Passes` over a module."""

    def __init__(self, module) -> None:
        self.module = module

    def per_sequence(self, examples, model=None):
        batch = Batcher("padded", "labels", 10_000, 0).collate(examples)
        with torch.no_grad():
            return [
                sums.numpy()
                for sums in sequence_sums(self.module(**batch.model_inputs())[0], batch.label_counts)[:, None]
            ]


@pytest.mark.parametrize("mix", ["both", "one class"])
def test_loss_and_gradient_equal_trls(own_tokenizer, tmp_path, mix):
    """The oracle is TRL's KTOTrainer, given its own mismatches: those of the batch, shifted by one."""
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        vocab_size=len(own_tokenizer), pad_token_id=own_tokenizer.pad_token_id, initializer_range=0.1, **shape
    )
    model, reference = LlamaForCausalLM(config).eval(), LlamaForCausalLM(config).eval()
    draw = np.random.default_rng(0)
    lambdas = {True: 1.2, False: 0.7}
    rows = []
    for row in range(6):
        thumb = mix == "one class" or row % 3 != 1
        prompt, response = (draw.integers(4, len(own_tokenizer), draw.integers(2, 12)).astype(np.int32) for _ in "ab")
        rows.append(Example(row, prompt, (response,), weight=lambdas[True] if thumb else -lambdas[False]))
    batch = [replace(item, companion=mismatched(item, rows[n - 1], 128)) for n, item in enumerate(rows)]
    trainer = trl.KTOTrainer(
        model=copy.deepcopy(model),
        ref_model=copy.deepcopy(reference),
        args=trl.KTOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            report_to="none",
            max_length=128,
            beta=0.3,
            desirable_weight=lambdas[True],
            undesirable_weight=lambdas[False],
            per_device_train_batch_size=len(rows),
            gradient_checkpointing=False,
        ),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["a"], "completion": ["b"], "label": [True]}),
        processing_class=own_tokenizer,
    )
    columns = [
        {
            "prompt_ids": e.prompt.tolist(),
            "completion_ids": e.responses[0].tolist(),
            "KL_completion_ids": e.companion.responses[0].tolist(),
            "label": e.weight > 0,
        }
        for e in batch
    ]
    theirs = trainer.compute_loss(trainer.model.eval(), trainer.data_collator(columns))
    theirs.backward()

    module, frozen = PolicyModule(model), Modules(PolicyModule(reference))

    def with_reference(examples):
        values = frozen.per_sequence(examples)
        return [replace(e, frozen_log_probs={"reference": v}) for e, v in zip(examples, values, strict=True)]

    companions = with_reference([e.companion for e in batch])
    batch = [replace(e, companion=c) for e, c in zip(with_reference(batch), companions, strict=True)]
    objective = KtoObjective(0.3)
    micro = Batcher("padded", "labels", 10_000, 0).collate(batch)
    micro = replace(micro, prepared=objective.prepare(batch, Modules(module)))
    loss, sums = objective.forward(module(**micro.model_inputs()), micro)
    (loss / objective.count(batch)).backward()
    assert loss.item() / len(rows) == pytest.approx(theirs.item(), rel=1e-5)
    for ours, expected in zip(model.parameters(), trainer.model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, expected.grad, rtol=1e-4, atol=1e-7)
    figures = objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))
    logged = {name: values[-1] for name, values in trainer._metrics["eval"].items()}
    assert figures["z"] == pytest.approx(logged["kl"], rel=1e-4, abs=1e-6)
    assert figures["reward_desirable"] == pytest.approx(logged["rewards/chosen"], rel=1e-4)
    assert figures["log_probs_desirable"] == pytest.approx(logged["logps/chosen"], rel=1e-5)
    if mix == "both":
        assert figures["reward_undesirable"] == pytest.approx(logged["rewards/rejected"], rel=1e-4)
        assert figures["margin"] == pytest.approx(logged["rewards/margins"], rel=1e-4)


def test_configs_of_earlier_releases_still_load():
    """Which call the reduction `log_probs`; both names at once are refused."""
    former = {"method": "kto", "log_probs": "mean", "beta": 0.1}
    assert KtoConfig.model_validate(former) == KtoConfig(method="kto", reduction="mean", beta=0.1)
    assert "log_probs" not in KtoConfig.model_validate(former).model_dump()
    with pytest.raises(ValueError, match="log_probs"):
        KtoConfig.model_validate({**former, "reduction": "mean"})
