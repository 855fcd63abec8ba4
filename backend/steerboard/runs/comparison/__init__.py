"""Several runs side by side, for people without an account."""
