"""What every benchmark builds on: the machine, a platform of its own, times of requests."""
