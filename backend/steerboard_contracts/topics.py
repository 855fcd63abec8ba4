"""The topics that launch forms group the settings of a run under.

A setting has the same meaning wherever its name occurs, so its topic is given here once, by name. A field whose name
means something else in its kind, or which another package's method adds, has its own:
`json_schema_extra={"topic": ...}`.
"""

from __future__ import annotations

from typing import Any

# In the order of forms.
TOPICS: dict[str, frozenset[str]] = {
    "Model": frozenset({"source", "vocabulary", "hidden", "layers", "heads", "role", "label", "fingerprint"}),
    "Data": frozenset(
        {
            *("max_length", "too_long", "learn", "template", "half", "threshold", "separator", "last_step_only"),
            *("prompts", "limit", "split", "portion", "makes", "parts", "size", "sft_on"),
        }
    ),
    "Tasks": frozenset({"tasks", "shots", "folder", "chat_template"}),
    "Optimiser": frozenset(
        {
            *("lr", "batch", "epochs", "max_steps", "warmup_ratio", "min_lr_ratio", "weight_decay"),
            *("adam_beta1", "adam_beta2", "max_grad_norm", "minibatches", "updates"),
        }
    ),
    "Loss": frozenset(
        {
            *("beta", "alpha", "tau", "reduction", "reducer", "sft_weight", "label_smoothing", "gamma_beta_ratio"),
            *("preference_weight", "quality_weight", "lambda_desirable", "lambda_undesirable", "divergence"),
            *("centre", "use_margin", "self_normalised", "max_weight", "loss_floor", "contrast", "on_policy"),
            *("kl_weight", "kl_in", "kl_estimator", "ratio", "clip", "clip_low", "clip_high", "dual_clip"),
            *("gate_positive", "gate_negative", "entropy_weight", "ptx_coefficient", "ptx_batch"),
            *("scaling", "baseline"),
        }
    ),
    "Critic": frozenset(
        {"critic_lr", "critic_warmup", "gae_lambda", "gamma", "value_clip", "value_weight"},
    ),
    "Off-policy correction": frozenset(
        {
            *("staleness", "max_off_policy_steps", "kl_stop", "max_sampler_difference"),
            *("sampler_weight_cap", "sampler_weight_level", "sampler_mean_low", "sampler_mean_high"),
            *("sampler_token_low", "sampler_token_high"),
        }
    ),
    "Scores": frozenset(
        {
            *("attributes", "score_scale", "score_step", "score_limit", "score_style", "score_place", "score_words"),
            *("score_phrase", "balance_scores", "drop_score", "default_score", "default_attributes", "score", "scores"),
        }
    ),
    "Rewards": frozenset(
        {
            *("rules", "judge_budget", "reward_weights", "reward_clip", "normalise_rewards", "cut_penalty"),
            *("overlong_tokens", "overlong_share", "overlong_penalty", "max_unscored", "max_skipped", "drop_equal"),
            *("aggregate", "quality", "noise", "weights", "scale", "penalty"),
        }
    ),
    "Selection": frozenset({"min_margin", "pairs", "relative", "opponents"}),
    "Sampling": frozenset(
        {"answers", "temperature", "max_new_tokens", "refill", "environment", "decoding", "endpoint"},
    ),
    "Entrants and judges": frozenset({"entrants", "examples", "decides", "judge"}),
    "Parameters trained": frozenset({"lora"}),
    "Mixture of experts": frozenset(
        {"router_aux_loss", "router_balance", "expert_kernels", "freeze_router", "router_replay"}
    ),
    "Evaluation and checkpoints": frozenset(
        {
            *("evaluate_every", "evaluate_rows", "keep", "checkpoint_every", "checkpoint_seconds", "probe", "health"),
            *("inspect_pairs", "inspect_groups", "inspect_group_steps", "condition_gain_rows"),
        }
    ),
    "Devices and precision": frozenset(
        {
            *("precision", "strategy", "offload", "placement", "engine", "vllm", "gradient_checkpointing"),
            *("micro_tokens", "micro_batch", "batching", "share_prompt", "sample_batch"),
            *("batch_size", "batch_tokens", "shards"),
        }
    ),
    "Randomness": frozenset({"seed", "deterministic"}),
}
_TOPIC_OF = {name: topic for topic, names in TOPICS.items() for name in names}
# What a kind is, rather than how it is set.
_FIXED = ("run", "method")


def with_topics(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a config with `topic` at each of its settings. What no topic names is a method's own."""
    properties = {
        name: node if name in _FIXED or "topic" in node else {**node, "topic": _TOPIC_OF.get(name, "Method")}
        for name, node in schema["properties"].items()
    }
    return {**schema, "properties": properties}
