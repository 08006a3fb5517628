"""The schedule of a tile pass: its items, stages, layout and their search."""
