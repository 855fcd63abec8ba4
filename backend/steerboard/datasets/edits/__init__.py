"""New versions of a dataset of pairs or thumbs, with rows that a person marked dropped or flipped."""
