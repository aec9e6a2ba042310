"""Where a generated text gets its choices from: random numbers, a list of numbers, or Hypothesis (`strategies`).

A generator that asks only for choices is a function of them. So the same generator serves properties, long runs and fuzzers, and
a failing program becomes smaller when its choices do (`smaller`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choices(Protocol):
    """The source of choices."""

    def below(self, count: int) -> int:
        """A number from 0 to ``count - 1``. 0 stands for the simplest choice."""


class RandomChoices:
    """Choices that depend on a seed only. `made` has the choices so far."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self.made: list[int] = []

    def below(self, count: int) -> int:
        """A random number."""
        number = int(self._random() * count)
        self.made.append(number)
        return number


class GivenChoices:
    """Choices from a list; the simplest ones after its end."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)

    def below(self, count: int) -> int:
        """The next number of the list."""
        return next(self._numbers, 0) % count


def pick(choices: Choices, options: Sequence[T]) -> T:
    """One of the options. The first is the simplest."""
    return options[choices.below(len(options))]


def smaller(made: Sequence[int], still: Callable[[list[int]], bool]) -> list[int]:
    """A short list of small choices for which `still` is true, as it is for `made`."""
    best = list(made)
    size = len(best)
    while size:
        start = 0
        while start < len(best):
            without = best[:start] + best[start + size :]
            zeros = best[:start] + [0] * len(best[start : start + size]) + best[start + size :]
            if still(without):
                best = without
            elif any(best[start : start + size]) and still(zeros):
                best = zeros
                start += size
            else:
                start += size
        size //= 2
    return best
