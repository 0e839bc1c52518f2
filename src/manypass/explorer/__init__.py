"""The explorer: learning curves on a local page, redrawn as a slider moves.

view (what is asked) → answers (at once) or runs (long, in workers) → server → page.
"""
