"""`python -m steerboard.app.openapi`: the API's description, from which the dashboard's client is generated."""

from __future__ import annotations

import json
import sys

from steerboard.app.main import create_app
from steerboard.platform.settings import Settings

if __name__ == "__main__":
    # Nothing connects to it: describing needs no database.
    app = create_app(Settings(database_url="postgresql://nowhere/none"))
    json.dump(app.openapi(), sys.stdout, indent=1, sort_keys=True)
    print()
