"""Kernels that give the same result in every run on the same kind of device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from steerboard_contracts.errors import BadInput


@contextmanager
def deterministic_kernels(wanted: bool) -> Iterator[None]:
    """Make torch refuse all other kernels, if `wanted`. Must be entered before a GPU is used.

    Raises `BadInput` (`not_deterministic`) where a step has no such kernel.
    """
    if not wanted:
        yield
        return
    # cuBLAS reads it when it is used first ("Results Reproducibility" in its documentation).
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # Nothing here reads memory that was not written, and filling it costs a pass over every new tensor.
    setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)  # noqa: B010 -- a property of a module
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise BadInput(
            f"a step of this run has no deterministic kernel on this device: {str(error).splitlines()[0][:200]}",
            code="not_deterministic",
            hint="Set `deterministic: false`, or choose another device, strategy or precision.",
        ) from error
    finally:
        torch.use_deterministic_algorithms(False)
