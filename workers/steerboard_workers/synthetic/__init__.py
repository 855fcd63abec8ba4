"""Synthetic demo data written by this package: instructions, preferences, prompts and thumbs, and their known quality.

Nothing here comes from people or from another model. It exists so that the demo can show a whole pipeline in
minutes and check its reward models against a quality that is known exactly. Never mistake it for real data.
"""

from steerboard_workers.synthetic.quality import quality
from steerboard_workers.synthetic.writer import write_demo_data

__all__ = ["quality", "write_demo_data"]
