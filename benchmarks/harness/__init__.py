"""What every benchmark stands on: the machine, a platform of its own, times of requests."""
