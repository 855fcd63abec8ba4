"""The places where artifacts are stored: a folder, or a bucket."""
