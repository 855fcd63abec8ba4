"""The border between platform and stage process: `stage.json` in, JSON lines and `outputs/` out.

A stage directory:
    stage.json            StageSpec, written by the supervisor (or by hand)
    checkpoints/          a1-step-00000040/ ..., attempt and step in the name, renamed into place last
    outputs/              written under a temporary name, renamed last
The process prints one StageEvent a line on its standard output and nothing else there.
"""
