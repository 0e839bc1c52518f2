"""Property tests draw the same examples every time: a test run depends on the code alone."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
