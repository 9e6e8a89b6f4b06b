"""For all tests: how long an example takes is no matter of theirs, on a machine that does other things too."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")
