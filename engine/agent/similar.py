"""Saved tools that do nearly the same as another tool, so that an agent uses one of them, or removes one.

The search index proposes tools that share words with it. Two tools are similar if most words of their names and descriptions are
the same. Opposites and other objects have the same words around them (`count_words`, `count_lines`). So tools are different if each
has a word in its name that the other does not know, or if they convert in opposite directions (`csv_to_json`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import ToolStore
from albert_tools.engine.session_access import search_covered

#: The most names.
MAX_SIMILAR = 3
#: The most tools that are compared, if the lease covers all of them.
MAX_COMPARED = 20
#: The share of common words from which on two tools are similar, and the weight of the names of parameters in it.
LEAST, PARAMETERS = 0.5, 0.1
#: Characters of the name and of the description that are compared.
MAX_TEXT = 500

_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Words that say nothing about a tool.
_COMMON = frozenset(
    """a all an and are as at be by can each every for from had has have how if in into is it its many no not of on one or so than
    that the their them then there these this to was were what when where which who whose with""".split()
)
_DIRECTION = frozenset({"to", "from", "into"})


def similar(
    store: ToolStore, definition: ToolDefinition, covers: Callable[[str], bool] = lambda name: True
) -> list[str]:
    """The names of at most three saved tools that do nearly the same, the most similar first; only tools that the lease covers."""
    name, words = _name(definition), _words(definition)
    matches = []
    try:
        text = " ".join(dict.fromkeys([*name, *sorted(words)]))
        proposed = search_covered(store, text, MAX_COMPARED, True, covers)
    except Failure:
        # The tool is defined all the same.
        return []
    for summary in proposed:
        try:
            other = store.load(summary.name).definition
        except Failure:
            continue
        score = similarity(definition, other)
        if other.name != definition.name and score >= LEAST:
            matches.append((-score, other.name))
    return [name for _, name in sorted(matches)[:MAX_SIMILAR]]


def similarity(one: ToolDefinition, other: ToolDefinition) -> float:
    """The share of words that two tools have in common, from 0 to 1.1; 0 if their names differ in what they do."""
    names, words = (_name(one), _name(other)), (_words(one), _words(other))
    parameters = [{p.name.casefold() for p in d.parameters} for d in (one, other)]
    unknown = [set(names[i]) - words[1 - i] - parameters[1 - i] for i in (0, 1)]
    if all(unknown):
        return 0.0
    directed = any(_DIRECTION.intersection(_split(d.name)) for d in (one, other))
    shared = [[w for w in name if w in names[1 - i]] for i, name in enumerate(names)]
    if directed and shared[0] != shared[1]:
        return 0.0
    return _share(*words) + PARAMETERS * _share(*parameters)


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0


def _name(definition: ToolDefinition) -> list[str]:
    return _stems(definition.name)


def _words(definition: ToolDefinition) -> set[str]:
    first = definition.description.split("\n\n")[0]
    return {*_stems(definition.name), *_stems(first)}


def _stems(text: str) -> list[str]:
    """The words of a text that mean something, without the s of a plural."""
    words = [w for w in _split(text) if w not in _COMMON]
    return [w[:-1] if len(w) > 3 and w[-1] == "s" and w[-2] != "s" else w for w in words]


def _split(text: str) -> list[str]:
    return _WORD.findall(_CAPITAL.sub(" ", text[:MAX_TEXT]).casefold())
