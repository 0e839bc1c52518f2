"""Exact theory of linear rules: Adaline and Hebbian learning for N → ∞."""
