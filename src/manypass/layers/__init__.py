"""Two-layer networks: the rule, their averages over Gaussian fields, and one-pass learning."""
