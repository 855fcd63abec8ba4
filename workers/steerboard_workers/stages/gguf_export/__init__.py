"""A model as a GGUF file: llama.cpp's own converter, the Modelfile, and how the file answers."""
