"""Sets how many examples Hypothesis tries for a property.

`make test` tries few examples, the same ones each time, so all developers get the same result. `make test-slow` tries at least
thirty times as many, new ones each time, and so finds new bugs.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

#: The `--hypothesis-profile` with many examples.
LONG = "long"
settings.register_profile(LONG, deadline=None, max_examples=2000)

# A property without `@examples` has these numbers. On a busy machine an example can take longer than any deadline.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")


def examples(few: int, many: int | None = None) -> settings:
    """Settings for a property with `few` examples. The profile `long` tries `many`, or thirty times as many."""
    most = few if settings.get_current_profile_name() != LONG else many or 30 * few
    return settings(max_examples=most, deadline=None, suppress_health_check=list(HealthCheck))
