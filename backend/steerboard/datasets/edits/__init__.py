"""New versions of a dataset of pairs, with rows that a person marked dropped or flipped."""
