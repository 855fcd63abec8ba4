"""How tests are dealt out to processes, and what holds for each. What tests use is in `support/fixtures.py`."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

# `make test` draws the same examples each time and judges none by its time; `make test-all` looks further.
hypothesis_settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("ci")

# Folders whose tests share what takes long to make (a running platform, trained models), the longest first: one process
# has each of them. Others are cut into files.
_TOGETHER = ("e2e", "playground", "faults", "training", "docs")


def _group(nodeid: str) -> str:
    """Which tests stay in one process with this one."""
    file = nodeid.split("::")[0].removeprefix("tests/")
    folder = file.split("/")[0]
    return folder if folder in _TOGETHER else file


class _ByGroup(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByGroup | None:
    return _ByGroup(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_configure(config: pytest.Config) -> None:
    # What collection imports stays: to look for garbage in it, now and whenever a test or a library collects, takes
    # longer than many tests.
    gc.disable()
    # Hypothesis draws constants from the source of all modules of ours that are imported by then: to read it takes half
    # a minute in a clean clone, and makes the examples depend on which tests came before.
    if config.getoption("--hypothesis-profile", None) != "explore":
        providers._get_local_constants = lambda: providers._local_constants
    # A process that only deals out tests needs none of what they use.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.import_plugin("support.fixtures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(_TOGETHER)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
