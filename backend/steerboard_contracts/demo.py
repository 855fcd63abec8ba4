"""What `steerboard demo` imports."""

from __future__ import annotations

# Kind of a dataset -> its name.
DEMO_DATASETS = {kind: f"demo-{kind}" for kind in ("instructions", "preferences", "prompts", "unpaired")}
