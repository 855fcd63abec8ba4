"""The process that a model of the playground lives in: it gets requests through one pipe and answers through
another."""
