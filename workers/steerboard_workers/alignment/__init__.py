"""Pure parts of training: rendering, batches, losses. Texts and tensors in, tensors out; no files, no processes."""
