"""A node of a worker that is not there, by which an attempt with roles apart ends."""

from __future__ import annotations

from steerboard_workers.engines.vllm.watchdog import EngineFailed


class NodeMissing(EngineFailed):
    """A node that did not come, or is gone. The next attempt resumes, as soon as it is back."""

    code = "node_missing"
    title = "A node of the worker is missing"
