"""Readers of files that others wrote: any supported file as a stream of numbered records, within bounds."""
