"""Shapes on which the API, the workers and the CLI agree. Pydantic only; imports nothing else of ours."""
