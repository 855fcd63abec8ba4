"""What a run's owner must know though the run works: shown wherever the run or its result is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel

from steerboard_contracts.watching.health import HealthRule, ThresholdRule
from steerboard_contracts.wording import counted, listed

# Shares of the rows that a run should learn from.
_WARNED, _SERIOUS = 0.01, 0.10
# The best learning rate of adapters over that of all weights ("LoRA Without Regret", Thinking Machines Lab, 2025).
LORA_RATE = 10
# A held-out loss that rises by less, as a share of the lowest or in itself, may be noise.
_RISE, _LEAST_RISE = 0.02, 0.01


class RunWarning(BaseModel):
    """One of each `code` a run. `serious`: its result is not what its settings suggest."""

    code: str
    level: Literal["warning", "serious"] = "warning"
    message: str


def rows_too_long(dataset: str, rows: int, cut: int, left_out: int, max_length: int) -> RunWarning | None:
    """Warns of a dataset of which `cut` of `rows` rows lost their end or the start of their prompt, and `left_out` are
    not learned from at all. None where so few are hardly missed."""
    share = (cut + left_out) / rows if rows else 0.0
    if share < _WARNED:
        return None
    what = [f"{number:,} {fate}" for number, fate in ((cut, "were cut"), (left_out, "were left out")) if number]
    return RunWarning(
        code="rows_too_long",
        level="serious" if share >= _SERIOUS else "warning",
        message=f"{share:.0%} of the {rows:,} rows of {dataset} have more than {max_length:,} tokens: "
        f"{listed(what)}. Raise max_length to learn from them as they are.",
    )


def rows_would_be_too_long(dataset: str, checked: int, too_long: int, fate: str, max_length: int) -> RunWarning | None:
    """The same before a run, by those of its rows that were checked. `fate`: what the run would do with them."""
    share = too_long / checked if checked else 0.0
    if share < _WARNED:
        return None
    return RunWarning(
        code="rows_too_long",
        level="serious" if share >= _SERIOUS else "warning",
        message=f"{share:.0%} of the {counted(checked, 'row')} of {dataset} that were checked have more than "
        f"{max_length:,} tokens, and would be {fate}. Raise max_length to learn from them as they are.",
    )


def no_native_bf16() -> RunWarning:
    """The run computes in bf16 on a CPU without instructions for it."""
    return RunWarning(
        code="slow_bf16",
        message="This CPU has no instructions for bf16, and computes it many times more slowly than fp32. Set "
        "precision to fast, which takes bf16 only where the device has it, or to fp32.",
    )


def full_rate_kept(rate: float) -> RunWarning:
    """Adapters are trained at `rate`, the method's default for all weights."""
    return RunWarning(
        code="lora_at_full_rate",
        message=f"LoRA is trained at {rate:g}, the method's default for training all weights. Adapters learn best at "
        f"about {LORA_RATE} times such a rate: set lr to about {LORA_RATE * rate:g}.",
    )


def doubtful_judges(doubts: Mapping[str, str]) -> RunWarning | None:
    """`doubts`: why each judge that rewards answers should not do so, by its name."""
    if not doubts:
        return None
    return RunWarning(
        code="uncalibrated_judge",
        level="serious",
        message=" ".join(f"Judge {name} rewards the answers, but {doubt}." for name, doubt in doubts.items())
        + " Read higher rewards with care until the judge is calibrated on pairs that people have ranked.",
    )


def fewer_steps(limit: int | None, steps: int, epochs: float, *, counted_rows: bool = False) -> RunWarning | None:
    """`limit`: `max_steps`. `steps`: how many the epochs give; with `counted_rows`, as far as that is known before the
    rows are read, of which the run may leave some out."""
    if limit is None or limit <= steps:
        return None
    end = counted(steps, "step") + (" at most" if counted_rows else "")
    return RunWarning(
        code="fewer_steps",
        message=f"Training ends after {end}, the end of {counted(epochs, 'epoch')}, and max_steps is {limit:,}. Raise "
        "epochs to reach it.",
    )


def overfitted(losses: Sequence[tuple[int, float]], *, best_kept: bool = False) -> RunWarning | None:
    """`losses`: step and held-out loss of each evaluation, in order; the last is of the end. None unless the lowest one
    came before half of the steps, and the last is higher by more than noise. `best_kept`: the saved weights are those
    of the lowest."""
    if not losses:
        return None
    (best, lowest), (end, last) = min(losses, key=lambda point: point[1]), losses[-1]
    if best * 2 >= end or last - lowest <= max(_RISE * abs(lowest), _LEAST_RISE):
        return None
    what = f"The held-out loss was lowest at step {best:,} ({lowest:.4g}) and rose to {last:.4g} at step {end:,}: "
    if best_kept:
        kept = f"the weights of step {best:,} were kept, and the steps after it taught nothing that is in them. Train "
        return RunWarning(code="overfitted", message=f"{what}{kept}for fewer epochs, or on more rows.")
    return RunWarning(
        code="overfitted",
        level="serious",
        message=f"{what}the model learned its training rows by heart. Start again with keep: best, which saves the "
        "weights of the lowest loss, or train for fewer epochs, at a lower learning rate, or on more rows.",
    )


def unwatched(rules: Sequence[HealthRule], figures: Collection[str]) -> RunWarning | None:
    """`figures`: the names of all that the run had. None unless a threshold is on another name."""
    missing = {rule.figure: None for rule in rules if isinstance(rule, ThresholdRule) and rule.figure not in figures}
    if not missing:
        return None
    named = []
    for name in missing:
        near = get_close_matches(name, sorted(figures), n=1, cutoff=0.75)
        named.append(f"`{name}`" + (f" (perhaps `{near[0]}`)" if near else ""))
    return RunWarning(
        code="unwatched_figure", message=f"Health rules watched figures that the run does not have: {listed(named)}."
    )


def mixture_warnings(experts: int, lora: bool, balanced: bool, adapted: bool = False) -> list[RunWarning]:
    """The warnings of a training run whose model has so many experts a layer. `balanced`: their routers stay as they
    are, or learn from a load-balancing loss, too. `adapted`: some of LoRA's adapters are on them."""
    if not experts:
        return []
    warnings = []
    if not balanced:
        warnings.append(
            RunWarning(
                code="router_loss_left_out",
                message=f"The model is a mixture of {experts} experts, and its router's load-balancing loss is not "
                "part of the training loss: long training may leave some experts unused. Set router_aux_loss, or "
                "freeze_router.",
            )
        )
    if lora and not adapted:
        warnings.append(
            RunWarning(
                code="experts_not_adapted",
                level="serious",
                message=f"LoRA leaves all {experts} experts as they are, with targets linear, too: only other layers "
                "learn. Set lora.targets to experts to adapt these, too.",
            )
        )
    return warnings


def router_loss_of(config: Mapping[str, Any]) -> float:
    """The coefficient of the routers' load-balancing loss by a model's config.json; 0 without."""
    text = config.get("text_config")
    parts = (config, text) if isinstance(text, Mapping) else (config,)
    return next((float(part["router_aux_loss_coef"]) for part in parts if part.get("router_aux_loss_coef")), 0.0)


def experts_of(config: Mapping[str, Any]) -> int:
    """How many experts each mixture layer has, by a model's config.json; 0 without any."""
    text = config.get("text_config")
    for part in (config, text if isinstance(text, Mapping) else {}):
        for name in ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"):
            count = part.get(name)
            if isinstance(count, int) and count > 1:
                return count
    return 0
