"""Figures of benchmarks from their judgment files, as the benchmarks' own scripts print them. No server, no database.

`steerboard_figures.judgment_figures.figures(paths, "auto", Options())` is what `steerboard figures` prints as JSON.
"""
