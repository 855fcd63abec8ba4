"""How likely another model makes an entrant's answers, and how much likelier the entrant itself does:
log pi(y|x) - log pi_ref(y|x).

The mean of the latter over answers that were sampled from pi estimates KL(pi || pi_ref) without bias: the estimator k1
of John Schulman, "Approximating KL Divergence" (2020), http://joschu.net/blog/kl-approx.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.run_kinds.answer import AnswerConfig
from steerboard_workers.alignment.rendering.render import answer_room
from steerboard_workers.engines.log_probs import AnswerLogProbs, Drawn
from steerboard_workers.stages.models.conditions import score_text
from steerboard_workers.stages.models.model_io import LoadedModel, load_policy, load_tokenizer
from steerboard_workers.stages.models.tokens import check_tokenizer
from steerboard_workers.stages.runtime import Stage

KL_TO = "kl_to"
KEY = ("position", "sample", "turn")
# Positions of one forward pass.
BATCH_TOKENS = 2048
# (position, sample, turn)
Place = tuple[int, int, int]
# What came before a turn, and its tokens as they were drawn.
Answered = tuple[list[dict[str, str]], list[int]]


def log_ratios(stage: Stage, config: AnswerConfig, answered: Mapping[Place, Answered]) -> dict[Place, float]:
    """The log-ratio of each turn, in nats, by a forward pass of each model. Both at the decoding's temperature; each is
    asked as itself: the entrant for the config's score, the other one for its own default, or for none where it knows
    none.

    Raises `BadInput` (`tokenizer_differs`, `window_too_small`).
    """
    temperature = config.decoding.temperature
    own = _log_probs(stage, config, "model", answered, temperature)
    other = _log_probs(stage, config, KL_TO, answered, temperature)
    return {place: own[place] - other[place] for place in answered}


def kl_to_log_probs(stage: Stage, config: AnswerConfig, answered: Mapping[Place, Answered]) -> dict[Place, float]:
    """The log-prob of each turn under the model of input `kl_to`, in nats, at temperature 1 however it was drawn, so
    that entrants compare. What `log_ratios` read at that temperature is not read again. Raises as that does."""
    return _log_probs(stage, config, KL_TO, answered, 1.0)


def _log_probs(
    stage: Stage, config: AnswerConfig, name: str, answered: Mapping[Place, Answered], temperature: float
) -> dict[Place, float]:
    at = f"log-probs-{name}" if temperature == config.decoding.temperature else f"log-probs-{name}-{temperature:g}"
    with ResumableRows(stage.checkpoints / at, stage.spec.attempt, KEY) as partial:
        if any(place not in partial for place in answered):
            _compute(stage, config, name, answered, temperature, partial)
        return {place: float(partial.rows[place]["log_prob"]) for place in answered}


def _compute(
    stage: Stage,
    config: AnswerConfig,
    name: str,
    answered: Mapping[Place, Answered],
    temperature: float,
    partial: ResumableRows,
) -> None:
    """Every pass of which something is missing. Passes depend on all answers and not on which are missing: what one
    gives depends on its shape, in the last bit."""
    if name == KL_TO:
        check_tokenizer(stage, KL_TO, load_tokenizer(stage.model_path("model")), whose="the entrant")
    stage.progress(0, 1, "models", "loading")
    with stage.phases.measure("load"), stage.using_model(name, "opening"):
        model = load_policy(stage.model_path(name), config.precision, stage.spec.device)
    asked = config.score if name == "model" else None
    prompts = _prompts(config, model, [*answered.values()], score_text(model.info, asked, stage.model(name).name))
    drawn = [Drawn(prompt, ids) for prompt, (_, ids) in zip(prompts, answered.values(), strict=True)]
    places, pad = list(answered), int(model.tokenizer.pad_token_id)
    whose = stage.model(name).name
    reader = AnswerLogProbs(
        *(model.model, model.device, pad, temperature),
        log=lambda line: stage.log(f"log-probs by {whose}: {line}"),
    )
    with stage.phases.measure("reference") as phase:
        for batch, batcher, part in reader.passes(drawn, BATCH_TOKENS):
            if all(places[at] in partial for at in batch):
                continue
            values = reader.read(batcher, part)
            phase.tokens += sum(drawn[at].tokens for at in batch)
            rows = zip((places[at] for at in batch), values, strict=True)
            partial.add({**dict(zip(KEY, place, strict=True)), "log_prob": value} for place, value in rows)
            stage.progress(len(partial.rows), len(places), "answers", f"log-probs by {whose}")


def _prompts(
    config: AnswerConfig, model: LoadedModel, answered: Sequence[Answered], text: str | None
) -> list[list[int]]:
    """The prompts as generation reads them: cut from the left so that the longest answer which was allowed fits behind
    them."""
    window = model.renderer.max_length
    longest = max(len(ids) for _, ids in answered)
    if longest >= window:
        raise BadInput(
            f"answers have up to {longest} tokens, but the model to compare with has a window of only {window}",
            code="window_too_small",
            hint="Lower max_new_tokens, or compare with a model of the same window.",
        )
    wanted = config.decoding.max_new_tokens
    room = answer_room(window, None if wanted is None else min(wanted, window - 1))
    return model.renderer.prompts_ids([prompt for prompt, _ in answered], [text] * len(answered), max(room, longest))
