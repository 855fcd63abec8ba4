"""What datasets need to know of what is above them."""

from __future__ import annotations

import uuid
from typing import Literal

from sqlalchemy.orm import Session

from steerboard.platform.hooks import Hook

# The dataset or model that `<pipeline>.<stage>` of a project made or reused.
stage_output: Hook[[Session, uuid.UUID, str, Literal["dataset", "model"]], uuid.UUID | None] = Hook("stage_output")

# Whether a run has read or made this dataset or model.
used_by_run: Hook[[Session, Literal["dataset", "model"], uuid.UUID], bool] = Hook("used_by_run")

# The module that is run to import, with the tables that datasets refer to.
import_process: Hook[[], str] = Hook("import_process")

# The content hash of a model.
model_hash: Hook[[Session, uuid.UUID], str | None] = Hook("model_hash")
