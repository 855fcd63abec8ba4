"""What training leaves: a whole model, or an adapter over its base. Either is read back before it counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.models import MODEL_INFO_FILE, ModelInfo
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.modules import JointModule
from steerboard_workers.stages.distributed.strategies import Strategy, unshared
from steerboard_workers.stages.models.adapters import (
    BASE,
    base_weights,
    below_adapters,
    copy_base,
    is_adapter,
    lost_in,
    merged_weights,
    write_adapter,
)
from steerboard_workers.stages.models.expert_adapters import expert_adapters
from steerboard_workers.stages.models.model_saving import (
    SavedModelDiffers,
    compare_saved,
    describe,
    save_model,
    save_weights,
    whole_model,
)
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.further import source_of
from steerboard_workers.stages.training.setup import Setup, open_model


class SavedModel:
    """`source` is the folder that training started from. `trained_only`: other weights are not needed to write it."""

    def __init__(self, start: Setup, config: TrainingConfig, source: Path) -> None:
        lora = config.lora
        self._start = start
        self._config = config
        self._lora = lora
        self._source = source
        self._quantised = lora is not None and lora.quantise != "none"
        self.is_adapter = lora is not None and not lora.merge
        # A base that is not already a folder has to be written, too.
        self._base_is_source = not is_adapter(source) and not start.resized
        self.trained_only = self._quantised or (self.is_adapter and self._base_is_source)
        self.parameters = start.parameters if self.is_adapter or lora is None else start.parameters - start.adapters

    def write(self, folder: Path, weights: dict[str, Tensor], info: ModelInfo) -> None:
        """Raises `SavedModelDiffers` unless every tensor reads back as it was."""
        if self._quantised:
            del self._start.model.config.quantization_config  # of the training only
        if self._lora is None:
            self._whole(folder, weights, info)
        elif not self.is_adapter:
            start = self._start
            experts = expert_adapters(start.model)
            merged = merged_weights(self._with_base(weights), self._lora, start.own_tokens, experts)
            self._whole(folder, merged, info)
        else:
            self._adapter(folder, weights, info, self._lora)

    def _with_base(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights below a quantised base's adapters are those that were quantised, read again."""
        if not self._quantised:
            return weights
        plain = open_model(self._source, self._config.model_copy(update={"lora": None}), also=self._start.also).model
        return below_adapters(unshared(plain), weights) | weights

    def _whole(self, folder: Path, weights: dict[str, Tensor], info: ModelInfo) -> None:
        model = whole_model(self._start.model, weights, self._start.stored)
        save_model(folder, model, self._start.tokenizer, info)

    def _adapter(self, folder: Path, weights: dict[str, Tensor], info: ModelInfo, lora: LoraConfig) -> None:
        start = self._start
        trained = {name: tensor for name, tensor in weights.items() if name in start.trained_names}
        if self._base_is_source:
            copy_base(self._source, folder)
        else:
            base = whole_model(start.model, base_weights(self._with_base(weights)), start.stored)
            save_weights(folder / BASE, base)
            compare_saved(folder / BASE, base)
        describe(start.model, start.tokenizer, info)
        write_adapter(folder, start.model, trained, lora, head=start.scalar, tokens=start.own_tokens)
        start.model.config.dtype = start.stored
        start.model.config.save_pretrained(folder)
        if not start.scalar:
            start.model.generation_config.save_pretrained(folder)
        start.tokenizer.save_pretrained(folder)
        (folder / MODEL_INFO_FILE).write_text(info.model_dump_json(indent=2) + "\n")
        lost = lost_in(folder, trained)
        if lost:
            raise SavedModelDiffers(f"{len(lost)} tensors of the adapter were lost in saving, such as {lost[0]}")


def save_all(
    stage: Stage,
    config: TrainingConfig,
    trained: Mapping[str, Setup],
    sharing: Strategy,
    data: TrainingData,
    summary: Mapping[str, Any],
) -> None:
    """Every process takes part in gathering the weights; the main one writes them, a folder for each model."""
    stage.progress(0, len(trained), "models", "saving")
    main = sharing.accelerator.is_main_process
    ready = []
    for name, setup in trained.items():
        source = source_of(stage, config, name, trained[JointModule.MAIN].tokenizer)
        writer = SavedModel(setup, config, stage.model_path(source))
        whole = sharing.whole(writer.trained_only, setup.model)
        ready.append((name, setup, source, writer, {name: tensor.to("cpu") for name, tensor in whole if main}))
    if not main:
        return
    for done, (name, setup, source, writer, weights) in enumerate(ready, 1):
        # What was learned of the data's rewards is about the model that training is for.
        about = data.info if name == JointModule.MAIN else {"normaliser": setup.info.normaliser}
        info = ModelInfo(
            role=setup.role,
            method=config.method,
            architecture=type(setup.model).__name__,
            parameters=writer.parameters,
            template=setup.info.template,
            max_length=setup.renderer.max_length,
            reward_at="conversation_end" if setup.renderer.whole else "answer_end",
            lora=config.lora if writer.is_adapter else None,
            lineage={"parent": stage.model(source).content_hash, "data": stage.dataset("data").content_hash},
            summary={k: v for k, v in summary.items() if isinstance(v, float | int | str) or v is None},
            **about,
        )
        if "changed_settings" in summary:
            info.lineage["changed_settings"] = summary["changed_settings"]
        if info.normaliser is not None and info.normaliser.reward_model_hash:
            info.lineage["reward_model"] = info.normaliser.reward_model_hash
        with stage.output_folder(name) as folder:
            writer.write(folder, weights, info)
        stage.progress(done, len(trained), "models", "saving")
