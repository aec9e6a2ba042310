"""Polynomials over unknown numbers that are at least 0. None stands for "no bound"."""

from __future__ import annotations

from typing import TypeAlias

from albert_tools.engine.model.manifest import Bound, Symbol, Term

Polynomial: TypeAlias = dict[tuple[Symbol, ...], int] | None

#: The most terms, symbols in a product, and the largest number. What is larger says nothing to a reader.
MAX_TERMS, MAX_DEGREE, MAX_NUMBER = 6, 4, 10**9

ZERO: Polynomial = {}
ONE: Polynomial = {(): 1}


def number(n: int) -> Polynomial:
    """A constant."""
    return {(): n} if n > 0 else {}


def symbol(s: Symbol) -> Polynomial:
    """One unknown number."""
    return {(s,): 1}


def plus(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum."""
    if left is None or right is None:
        return None
    terms = dict(left)
    for product, times in right.items():
        terms[product] = terms.get(product, 0) + times
    return _limited(terms)


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product. Nothing, however often, is nothing."""
    if left == {} or right == {}:
        return {}
    if left is None or right is None:
        return None
    terms: dict[tuple[Symbol, ...], int] = {}
    for ours, n in left.items():
        for theirs, m in right.items():
            product = tuple(sorted(ours + theirs))
            terms[product] = terms.get(product, 0) + n * m
    return _limited(terms)


def _limited(terms: dict[tuple[Symbol, ...], int]) -> Polynomial:
    if len(terms) > MAX_TERMS or any(len(p) > MAX_DEGREE or n > MAX_NUMBER for p, n in terms.items()):
        return None
    return terms


def largest(choices: list[Polynomial]) -> Polynomial:
    """At least each of them: the largest constant, and the sum of the others."""
    constants = [c.get((), 0) for c in choices if c is not None and c.keys() <= {()}]
    bound: Polynomial = number(max(constants, default=0))
    different: list[Polynomial] = []
    for choice in choices:
        if (choice is None or not choice.keys() <= {()}) and choice not in different:
            different.append(choice)
            bound = plus(bound, choice)
    return bound


def as_bound(polynomial: Polynomial) -> Bound:
    """The stored form."""
    if polynomial is None:
        return None
    return tuple(
        Term(n, product) for product, n in sorted(polynomial.items(), key=lambda item: (len(item[0]), item[0]))
    )
