"""One module a run kind: a directory in, a directory out. `python -m steerboard_workers.stages DIR` runs one."""
