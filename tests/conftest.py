"""What holds for all tests."""

from hypothesis import settings

# A slow machine is no failure: timings are measured in benchmarks, not asserted in tests.
settings.register_profile("aftershock", deadline=None)
settings.load_profile("aftershock")
