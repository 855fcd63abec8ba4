"""Roles of an online run on devices of their own: engines that sample, reward models and references, placed by Ray."""
