"""Backup and maintenance: backup and restore, garbage collection, and another key for the sealed secrets."""
