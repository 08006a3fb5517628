"""CUDA source generated for one tile pass, and its compilation in the background."""
