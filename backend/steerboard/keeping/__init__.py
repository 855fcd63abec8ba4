"""Keeping what is stored: backup and restore, garbage collection, and another key for the sealed secrets."""
