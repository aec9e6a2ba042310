"""How many examples a property gets: few in `make test`, the same ones each time, so that everybody gets the same result;
thirty times as many in `make test-slow`, new ones each time, to find new bugs.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

#: The `--hypothesis-profile` with many examples.
LONG = "long"
settings.register_profile(LONG, deadline=None)

# A busy machine stalls for longer than any deadline of an example.
settings.register_profile("default", deadline=None, derandomize=True)
settings.load_profile("default")


def examples(few: int) -> settings:
    """Settings for a property with `few` examples, or thirty times as many in the profile `long`."""
    times = 30 if settings.get_current_profile_name() == LONG else 1
    return settings(max_examples=few * times, deadline=None, suppress_health_check=list(HealthCheck))
