"""New versions of a dataset with rows that a person dropped, flipped or edited."""
