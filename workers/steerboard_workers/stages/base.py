"""Bring a base model in: random weights with a tokenizer of its own, a local folder, or a hub name.

A GGUF file is expanded into an ordinary folder. Of other folders only safetensors and plain files are taken over;
pickles and code in a model folder stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from steerboard_contracts.conditions.format import SCORE_MARKER
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.files.base_sources import (
    GGUF,
    MODEL_FILES,
    RANDOM_BASES,
    base_place,
    gguf_to_read,
    source_type,
)
from steerboard_contracts.files.disk import Disk
from steerboard_contracts.files.local_folders import LocalFolders, ModelFolder
from steerboard_contracts.files.model_facts import licence_named
from steerboard_contracts.models import MODEL_INFO_FILE, SCALARS, ModelInfo, ModelRole
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_contracts.samples import ANSWERS
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import ModelOutput
from steerboard_contracts.stage.spec import UPLOADED
from steerboard_contracts.tools import answer_text
from steerboard_contracts.wording import counted
from steerboard_workers.alignment.rendering.chat_template import check_default
from steerboard_workers.stages.models.foreign import check_model, copy_model, its_own_fault
from steerboard_workers.stages.models.foreign_weights import load_foreign
from steerboard_workers.stages.models.gguf_files import expand_gguf
from steerboard_workers.stages.models.model_io import check_safe, load_tokenizer, read_info
from steerboard_workers.stages.models.model_saving import save_model
from steerboard_workers.stages.runtime import Stage

RANDOM = RANDOM_BASES[0]
HUB_SECONDS = 20.0
# The entries of the lineage that the model's page shows.
_SHOWN = ("dequantised_from",)
BOS, EOS, PAD = "<s>", "</s>", "<pad>"


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, BaseModelConfig)
    torch.manual_seed(config.seed)
    with stage.phases.measure("load"):
        with stage.output_folder("model") as folder:
            if source_type(config.source) == "random":
                info = _random(stage, config, folder)
            else:
                info = _existing(stage, config, folder)
    output = ModelOutput(path=stage.output_path("model"), role=info.role)
    summary = {"parameters": info.parameters, "architecture": info.architecture, **info.summary}
    return Succeeded(outputs=[output], summary=summary)


# -- random weights -----------------------------------------------------------------------------------------------


def _random(stage: Stage, config: BaseModelConfig, folder: Path) -> ModelInfo:
    texts = _texts(stage)
    first = next(texts, None)
    if first is None:
        raise EmptySelection("no texts to train a tokenizer on", hint=f"Give {RANDOM} at least one dataset with rows.")
    stage.progress(0, 2, "parts", "tokenizer")
    tokenizer = train_tokenizer(_chain(first, texts), config.vocabulary, config.max_length)
    stage.progress(1, 2, "parts", "weights")
    model = random_llama(config, tokenizer)
    parameters = sum(p.numel() for p in model.parameters())
    info = ModelInfo(
        role="base",
        architecture=type(model).__name__,
        parameters=parameters,
        template="plain",
        max_length=config.max_length,
        lineage={"source": config.source},
    )
    save_model(folder, model, tokenizer, info)
    stage.progress(2, 2, "parts", "weights")
    return info


def random_llama(config: BaseModelConfig, tokenizer: Any) -> Any:
    """A Llama with tied embeddings, so that a small model spends its parameters in its layers."""
    if config.hidden % config.heads:
        raise BadInput(f"hidden {config.hidden} is not a multiple of heads {config.heads}", code="bad_config")
    torch.manual_seed(config.seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            intermediate_size=-(-config.hidden * 8 // 3 // 32) * 32,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=config.max_length,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def train_tokenizer(texts: Iterable[str], vocabulary: int, max_length: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE. Digits stand alone, so that the scores of a reward prompt share their tokens."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    special = [AddedToken(t, special=True, normalized=False) for t in (PAD, BOS, EOS, SCORE_MARKER)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        extra_special_tokens=[SCORE_MARKER],
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )


def _texts(stage: Stage) -> Iterator[str]:
    """All texts of the data inputs, as the plain template would write them (marker words are frequent)."""
    names = stage.input_names("data") or (["data"] if stage.has_input("data") else [])
    for name in names:
        for row in stage.rows(name):
            for message in row.get("prompt", []):
                yield f"User: {message['content']} Assistant:"
            for field in ANSWERS:
                if row.get(field):
                    yield " " + answer_text(row[field])
            yield from row.get("completions", [])


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


# -- existing weights ---------------------------------------------------------------------------------------------


def _existing(stage: Stage, config: BaseModelConfig, folder: Path) -> ModelInfo:
    lineage = {"source": config.source}
    disk = Disk(folder, "the model", stage.spec.disk_reserve_mb)
    unread: list[str] = []
    with _opened(stage, config.source, lineage) as model:
        file = model.check(base_place(config.source).file)
        stage.progress(0, 2, "parts", "copying")
        if file is not None:
            with stage.using_model(UPLOADED, "opening"):
                header, unread, note = expand_gguf(model, file, folder, disk)
            if note:
                stage.log(note, "warning")
            lineage |= {"file": file, **({"dequantised_from": ", ".join(header.quantised)} if header.quantised else {})}
        elif left_out := copy_model(model, folder, disk):
            what = "; ".join(left_out)
            stage.log(f"left out: {what}. Code, kernels and files that a model folder names are never used.", "warning")
    stage.progress(1, 2, "parts", "checking")
    with stage.using_model(UPLOADED, "opening"):
        check_safe(folder)
        info, beyond = _describe(folder, config, lineage)
    _tell(stage, info, [*unread, *beyond])
    stage.progress(2, 2, "parts", "checking")
    return info


def _tell(stage: Stage, info: ModelInfo, unread: list[str]) -> None:
    if types := info.lineage.get("dequantised_from"):
        stage.log(f"{info.lineage['file']} was dequantised from {types}: what that rounding lost does not come back.")
    if unread:
        names = f"{', '.join(unread[:5])}{', ...' if len(unread) > 5 else ''}"
        what = f"{info.architecture} does not read {counted(len(unread), 'tensor')} of the model: {names}"
        stage.log(f"{what}. What is trained from it is saved without them.", "warning")


def _opened(stage: Stage, source: str, lineage: dict[str, str]) -> AbstractContextManager[ModelFolder]:
    kind = source_type(source)
    if kind == "folder":
        return stage.spec.folders.open(base_place(source).place)
    if kind == "upload":
        uploaded = stage.model_path(UPLOADED)
        return LocalFolders(roots=(uploaded,)).open(str(uploaded))
    if kind != "hub":
        raise _unknown(source)
    from huggingface_hub import constants

    folder, told = _from_hub(stage, source)
    lineage |= told
    # The files of the hub's cache are links to where it keeps their contents.
    return LocalFolders(roots=(Path(constants.HF_HUB_CACHE),)).open(str(folder))


def _from_hub(stage: Stage, source: str) -> tuple[Path, dict[str, str]]:
    """A snapshot of allowed files only, and its commit and licence. Without a network, one that is cached already."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    place, file = base_place(source)
    name, _, revision = place.partition("@")
    wanted = revision or None
    try:
        # Asked first: it fails immediately without a network, where a download would try again for minutes.
        about = HfApi().model_info(name, revision=wanted, timeout=HUB_SECONDS)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise _unknown(source) from error
    except Exception as error:
        patterns = [file] if file else [*MODEL_FILES, f"*{GGUF}"]
        try:
            path = snapshot_download(name, revision=wanted, allow_patterns=patterns, local_files_only=True)
        except Exception:
            raise _not_downloaded(source, error) from error
        stage.log(f"the hub cannot be reached; using the copy of {source} in this machine's cache", "warning")
        return Path(path), {"revision": Path(path).name}
    file = gguf_to_read([sibling.rfilename for sibling in about.siblings or []], name, file)
    what = file or "safetensors and tokenizer files only"
    stage.log(f"downloading {name} at {about.sha} ({what})")
    try:
        patterns = [file] if file else list(MODEL_FILES)
        path = snapshot_download(name, revision=about.sha, allow_patterns=patterns)
    except OSError:
        raise  # a full disk has a code of its own
    except Exception as error:
        raise _not_downloaded(source, error) from error
    licence = licence_named(about.card_data.to_dict()) if about.card_data else None
    return Path(path), {"revision": str(about.sha), **({"licence": licence} if licence else {})}


def _not_downloaded(source: str, error: Exception) -> BadInput:
    # The hub's client and its HTTP library raise many kinds; whichever it was, the model is not to be had.
    return BadInput(
        f"model {source} could not be downloaded: {str(error).splitlines()[0][:200]}",
        code="unknown_model",
        hint="Check the name and this machine's access to the hub, or give a local folder.",
    )


def _describe(folder: Path, config: BaseModelConfig, lineage: dict[str, str]) -> tuple[ModelInfo, list[str]]:
    """Check that the folder loads as a language or reward model, and write steerboard.json into it. Also returns the
    names of tensors that such a model does not read."""
    check_model(folder)
    with its_own_fault("the tokenizer does not load"):
        tokenizer = load_tokenizer(folder)
    check_default(tokenizer)
    before = read_info(folder)
    model, unread = load_foreign(folder, tokenizer, config.label)
    window = getattr(model.config, "max_position_embeddings", None) or config.max_length
    info = before.model_copy(
        update={
            "role": _role(before.role, config.role),
            "architecture": type(model).__name__,
            "parameters": sum(p.numel() for p in model.parameters()),
            "max_length": before.max_length if (folder / MODEL_INFO_FILE).is_file() else min(window, 4096),
            "lineage": {**before.lineage, **lineage},
            "summary": {**before.summary, **{name: lineage[name] for name in _SHOWN if name in lineage}},
        }
    )
    with its_own_fault("the tokenizer cannot be saved again"):
        tokenizer.save_pretrained(folder)
    (folder / MODEL_INFO_FILE).write_text(info.model_dump_json(indent=2) + "\n")
    return info, unread


def _role(own: ModelRole, wanted: ModelRole | None) -> ModelRole:
    """Raises `BadInput` (`wrong_role`) where the head is none of the role that is wanted."""
    if wanted is not None and (wanted in SCALARS) != (own in SCALARS):
        what = "gives one number for a text" if own in SCALARS else "writes text"
        raise BadInput(
            f"the model {what}, and cannot be of role {wanted}",
            code="wrong_role",
            hint="Omit the role; it is then taken from the files.",
        )
    return wanted or own


def _unknown(source: str) -> BadInput:
    return BadInput(
        f"unknown base model {source!r}",
        code="unknown_model",
        hint=f"Give {RANDOM}, a folder that the worker may read, or a hub name like org/name.",
    )
