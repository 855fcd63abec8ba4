"""Where artifacts are stored: a folder, or a bucket."""
