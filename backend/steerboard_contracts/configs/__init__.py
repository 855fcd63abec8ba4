"""The configs of the run kinds but training, a module each. Training's are in `training` and `methods`."""
