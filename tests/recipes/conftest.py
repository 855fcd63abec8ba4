from __future__ import annotations

import pytest
from recipe_shelf import Shelf


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()
