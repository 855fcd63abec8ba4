"""The client with `await`; `_sync` is generated from it."""
