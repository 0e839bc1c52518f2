"""Finite-N learning, simulated at memory speed: the judge of every theory."""
