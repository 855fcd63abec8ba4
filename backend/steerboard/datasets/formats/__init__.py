"""Streaming readers: any supported file as a stream of numbered records. No database, no rules about samples."""
