"""What pyproject.toml cannot say: a wheel carries the migrations, the recipes and the built dashboard."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
# As in steerboard.platform.package_files.
SHIPPED = {"migrations": "migrations", "recipes": "recipes", "dashboard": "frontend/dist"}


class BuildWithShipped(build_py):
    """An editable install reads them in the checkout instead."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name, source in SHIPPED.items():
            target = Path(self.build_lib) / "steerboard" / "shipped" / name
            shutil.rmtree(target, ignore_errors=True)
            if not (HERE / source).is_dir():
                self.warn(f"{source} is not there: the wheel will lack it (`make web` builds the dashboard)")
                continue
            shutil.copytree(HERE / source, target, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": BuildWithShipped})
