"""Where files are kept by name: a folder (`file://`) or a bucket (`s3://`), behind one small protocol."""
