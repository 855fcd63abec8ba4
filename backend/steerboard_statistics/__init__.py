"""Statistics of evaluations: arrays and plain rows in, figures out. No database, no network, no platform."""
