"""A user's own data: exact moments of SGD with squared loss on a given matrix, and advice."""
