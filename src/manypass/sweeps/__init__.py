"""Many problems at once: grids, where their points are kept, and who computes them."""
