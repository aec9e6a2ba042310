"""The words of tools and of queries, for every index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from albert_tools.engine.model.protocols import Summary

#: The most words of a query that are used, because each word costs time.
MAX_WORDS = 16
#: The most characters of a folded word.
_MAX_WORD = 100


def words_of(text: str) -> list[str]:
    """The words of a text: runs of letters and digits."""
    return re.findall(r"[^\W_]+", text)


def folded_words(text: str) -> list[str]:
    """The words without case and accents, cut to a bounded length."""
    letters = unicodedata.normalize("NFD", text.casefold())
    return [word[:_MAX_WORD] for word in words_of("".join(c for c in letters if not unicodedata.combining(c)))]


def name_words(name: str) -> str:
    """A tool's name, and its parts: ``readFile2`` becomes ``readFile2 read File 2``."""
    return f"{name} {re.sub(r'(?<=[a-z])(?=[A-Z0-9])', ' ', name)}"


def containing(tools: Iterable[tuple[Summary, str]], words: list[str], limit: int) -> list[Summary]:
    """The tools that contain one of the words anywhere. Each comes with more text to search.

    More words rank higher; words in a name count twice.
    """
    folded = [word.casefold() for word in words]
    scored = []
    for summary, more in tools:
        name, text = summary.name.casefold(), f"{summary.description} {more}".casefold()
        score = sum(2 if word in name else word in text for word in folded)
        if score:
            scored.append((-score, summary))
    scored.sort(key=lambda pair: pair[0])
    return [summary for _, summary in scored[:limit]]
