"""What a policy is asked to be: the value, what a policy can be asked for, and how chat templates write it."""
