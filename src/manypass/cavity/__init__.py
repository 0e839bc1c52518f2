"""The effective single example: what one example of the training set goes through (Sec. III)."""
