"""Decision Transformer: Eq. 6 of arXiv 2308.12050; with other attributes than the score, SteerLM (arXiv 2310.05344)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from steerboard_contracts.attribute_names import MOST_ATTRIBUTES, SCORE, AttributeName
from steerboard_contracts.conditional import ConditionalConfig
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.conditions.score_words import (
    SCORE_PHRASE,
    SCORE_WORDS,
    ScorePhrase,
    ScorePlace,
    ScoreStyle,
    ScoreWords,
    Writing,
    word_borders,
)
from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import NonNegative, Positive
from steerboard_contracts.prompts import ScaleKind, TemplateName
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import PAPER


def _distinct(names: list[str]) -> list[str]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is in it twice")
    return names


class DecisionTransformerConfig(ConditionalConfig):
    """Eq. 6 of arXiv 2308.12050: SFT behind `<rm_score> a.b`, or behind several attributes in the order given."""

    method: Annotated[Literal["decision_transformer"], Field(description="The training method.")]
    attributes: Annotated[
        list[AttributeName],
        Field(
            default=[SCORE],
            min_length=1,
            max_length=MOST_ATTRIBUTES,
            description="What the policy learns to be asked for, in this order: rm_score is the reward of a row, other "
            "names are those of the rows' attributes. An attribute that a row lacks is left out of its prompt; every "
            "row needs a reward where rm_score is named, and none where it is not.",
            json_schema_extra={"source": "rm_score alone: arXiv 2308.12050, Eq. 6; others: arXiv 2310.05344"},
        ),
        AfterValidator(_distinct),
    ]
    score_scale: Annotated[
        ScaleKind,
        Field(
            description="What a score means: the normalised reward, a place among the labelled rewards, or the reward "
            "itself, stretched over the range of scores (linear), which fits words best.",
            json_schema_extra={"source": "arXiv 2308.12050, Offline RLHF: rewards less their mean, over their sd"},
        ),
    ] = "zscore"
    score_step: Annotated[Positive, Field(le=1, description="Scores are rounded to this: 0.01, 0.1, 0.5 or 1.")] = 0.1
    score_limit: Annotated[Positive, Field(description="Scores are clipped to between minus this and this.")] = 5.0
    score_style: Annotated[
        Literal["auto", "digits", "words", "tokens"],
        Field(
            description="How the score is written into the prompt: as digits (<rm_score> 5.00), as a word, which a "
            "pretrained model understands, or as a token of its own for each word, which begins as the word and learns "
            "what the score means; words and tokens are for rm_score alone. auto: as the start model is asked "
            "already; otherwise words if it has a chat template, and digits if not.",
            json_schema_extra={"source": "digits: arXiv 2308.12050, Eq. 6"},
        ),
    ] = "auto"
    score_place: Annotated[
        Literal["auto", "answer", "request", "both"],
        Field(
            description="Where it is written: at the beginning of the answer, at the end of the request (the last user "
            "turn), or in both places. auto: digits open the answer, words and tokens end the request.",
            json_schema_extra={"source": "answer: arXiv 2308.12050, Eq. 6"},
        ),
    ] = "auto"
    score_words: Annotated[
        ScoreWords,
        Field(
            description="The words of score_style words, from the lowest score to the highest; each stands for an "
            "equal part of the range. For style tokens, the words that the tokens begin as."
        ),
    ] = SCORE_WORDS
    score_phrase: Annotated[
        ScorePhrase,
        Field(
            description="The sentence that has the word or token at the end of the request, in place of {}: for "
            'reviews, "The opinion is {}."'
        ),
    ] = SCORE_PHRASE
    balance_scores: Annotated[
        bool,
        Field(
            description="Weigh the training rows so that each tenth of the range of scores counts alike, rows of rare "
            "scores at most 5 times as much as others; without it, most rewards decide most of what is learned."
        ),
    ] = False
    contrast: Annotated[
        bool,
        Field(
            description="Draw all answers to one prompt in one step, wherever it does not end between them, so that it "
            "learns what their scores change rather than what their prompts do."
        ),
    ] = False
    loss_floor: Annotated[
        NonNegative,
        Field(
            description="Nats per token: an answer that already costs fewer is known by heart and not learned further "
            "in that step; 0 learns all of them.",
            json_schema_extra={"source": "a floor as in arXiv 2002.08709, which climbs back to it instead of waiting"},
        ),
    ] = 0.0
    threshold: Annotated[
        Finite | None,
        Field(
            description="Only rows whose normalised reward z is above this are learned, as by MLE with filtering; "
            "empty: all of them. What a score means does not depend on it.",
            json_schema_extra={"source": "all rows: arXiv 2308.12050, Eq. 6; it does not combine this with Eq. 4"},
        ),
    ] = None
    default_score: Annotated[
        Finite, Field(description="Score requested of the policy if a prompt names none.", json_schema_extra=PAPER)
    ] = 5.0
    default_attributes: Annotated[
        Condition,
        Field(
            description="Other attributes requested of the policy if a prompt asks for nothing else, such as "
            "verbosity:2. Attributes that it does not name are left out."
        ),
    ] = Condition.of({})

    @model_validator(mode="after")
    def _fits(self) -> DecisionTransformerConfig:
        if self.threshold is not None and SCORE not in self.attributes:
            raise ValueError(f"threshold: it compares rewards, and {SCORE} is not among `attributes`")
        if self.balance_scores and SCORE not in self.attributes:
            raise ValueError(f"balance_scores: it weighs by scores, and {SCORE} is not among `attributes`")
        for name in self.default_attributes.values:
            if name == SCORE:
                raise ValueError(f"default_attributes: the default of {SCORE} is `default_score`")
            if name not in self.attributes:
                raise ValueError(f"default_attributes: {name} is not among `attributes`")
        self._check_style()
        return self

    def _check_style(self) -> None:
        """Raises `ValueError`."""
        if self.score_style in ("digits", "auto"):
            return
        if self.attributes != [SCORE]:
            raise ValueError(
                f"score_style: only {SCORE} alone is written in {self.score_style}; `attributes` has others"
            )
        if self.score_tokens and self.lora is not None and self.strategy == "zero3":
            raise ValueError(
                "score_style: tokens with lora needs strategy ddp or zero2: peft cannot train some rows of "
                "embeddings that zero3 spreads"
            )
        try:
            word_borders(-self.score_limit, self.score_limit, self.score_step, self.score_words)
        except ValueError as error:
            raise ValueError(f"score_words: {error}") from None

    def for_start(self, template: TemplateName, form: ConditionFormat | None) -> Self:
        fields: dict[str, Any] = {}
        if self.score_style == "auto" and self.attributes == [SCORE]:
            if form is not None and form.only_score:
                how = form.how
                fields = {"score_style": how.style, "score_place": how.place}
                fields |= {"score_words": how.words, "score_phrase": how.phrase} if how.style != "digits" else {}
            elif (self.template or template) == "chat" and self._words_fit:
                fields = {"score_style": "words"}
        chosen = {name: value for name, value in fields.items() if name == "score_style" or self._is_open(name)}
        decided = self.model_copy(update=chosen)
        try:
            decided._check_style()
        except ValueError as error:
            hint = "Name another score_style, or the range and words that the start model has."
            raise BadInput(f"as the start model is asked for a score, {error}", code="bad_config", hint=hint) from None
        return decided

    def _is_open(self, name: str) -> bool:
        """Whether the field has its default."""
        return bool(getattr(self, name) == type(self).model_fields[name].default)

    @property
    def _words_fit(self) -> bool:
        try:
            word_borders(-self.score_limit, self.score_limit, self.score_step, self.score_words)
        except ValueError:
            return False
        return True

    @property
    def writing(self) -> Writing | None:
        """How scores are written; None as in the paper. `auto` that no start model has decided is the paper's, too."""
        style: ScoreStyle = "digits" if self.score_style == "auto" else self.score_style
        place: ScorePlace = "answer" if style == "digits" else "request"
        if self.score_place != "auto":
            place = self.score_place
        writing = Writing(style=style, place=place, words=self.score_words, phrase=self.score_phrase)
        return None if (writing.style, writing.place) == ("digits", "answer") else writing

    @property
    def score_tokens(self) -> Writing | None:
        return self.writing if self.score_style == "tokens" else None


SPEC = MethodSpec(
    name="decision_transformer",
    title="Decision Transformer",
    about="SFT behind the reward, or several attributes, in the prompt, so that they can be asked for.",
    source="arXiv 2308.12050, Eq. 6; arXiv 2310.05344, step 3",
    recommended=True,
    config=DecisionTransformerConfig,
    training="steerboard_workers.alignment.methods.decision_transformer:DecisionTransformer",
    data=("labelled",),
    use="Align with a Decision Transformer",
    outputs=("policy",),
    learns_from_rewards=True,
    condition="default_score",
    form=("score_scale", "score_style", "score_place", "balance_scores", "score_step", "threshold"),
    place=50,
)
