"""Which methods can learn from a dataset, as it is or after a conversion; and the conversions."""
