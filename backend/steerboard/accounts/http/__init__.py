"""What requests of a known caller share: bounded and idempotent routes, live streams, whose folders are seen."""
