"""Feeds the cat."""

# TODO: ask the cat first
PORTION = 40


def feed(times):
    return [PORTION for _ in range(times)]  # FIXME: the bowl is only so large
