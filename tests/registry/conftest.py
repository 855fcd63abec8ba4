"""Makes `model_folders` importable for the tests beside it."""
