"""Plans on a GPU, timed beside cuStateVec."""
