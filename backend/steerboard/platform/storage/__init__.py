"""Stores of files by name: a folder (`file://`) or a bucket (`s3://`), behind one small protocol."""
