"""The process that a model of the playground lives in: it is asked through one pipe and answers through another."""
