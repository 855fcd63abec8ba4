"""OpenAI's API over our runs: files, fine-tuning jobs, models and chat completions, by its wire formats.

`/v1` is for the project that `accounts.access.asked_project` decides, `/p/{project}/v1` for a named one.
"""
