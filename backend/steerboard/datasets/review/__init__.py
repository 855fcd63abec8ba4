"""What people do to single rows of a dataset before they make a new version of it: changes, flags and comments."""
