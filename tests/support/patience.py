"""How many seconds a test waits for what is to happen. Where it does, they cost nothing; other work may have most of a
machine."""

PATIENCE = 300.0
