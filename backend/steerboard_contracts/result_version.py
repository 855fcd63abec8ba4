"""The version of what all runs share: rendering, batches, the training loop, engines, the order of rows.

A finished run is reused for an equal one while this, the `result_version` of its kind or method, and the libraries are
the same. Raise the narrowest of these with every change of a result; tests/golden finds changes that raised none, so
that code can move without computing anything again.
"""

RESULT_VERSION = 1
