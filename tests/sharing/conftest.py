from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from support.servers.app_client import AppClient


@pytest.fixture
def anybody(app: FastAPI) -> Iterator[TestClient]:
    """A client without an account."""
    with AppClient(app) as stranger:
        yield stranger
