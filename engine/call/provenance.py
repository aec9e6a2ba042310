"""Where the values of a session's arguments come from: the earlier results of the session that contained them.

The entry of a call by hand has this as ``from``, so that `engine.suggest` can find data flow without the values::

    "from": {"order_id": [["3f2a…", "orders/0/id", [2]]]}

The argument `order_id` was the value at this path of the result of the call 3f2a…, in a list of two. The sources are in order, and
the session saw the value at the first one first. ``*`` stands for all items of a list: the argument is the list of these values.
``title~5-9`` means the characters 5 to 8 of a text.

What a session has seen is in memory as long as its process lives, and is never written. A path has only keys that look like names.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from albert_tools.engine.model.definition import Json
from albert_tools.engine.model.redaction import MAX_LEVELS, redacted_text

#: The most values that are looked at in one result, and in the arguments of one call; and that are remembered of all sessions.
MAX_OF_RESULT, MAX_OF_ARGUMENTS, MAX_REMEMBERED = 1000, 100, 100_000
#: The most sources of one value, and the most values of one call, that are recorded.
MAX_SOURCES, MAX_RECORDED = 6, 24
#: Characters of a text in which values are looked for, and of a text that is compared itself rather than its hash.
MAX_SEARCHED, MAX_COMPARED = 200, 64

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ .-]{0,59}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9_#@+][\w#@.+/-]+\w")
#: A place in a result: the place around it, the key or index, and the length of the list that is indexed (0 for a key).
_Place = tuple[Any, Any, int]
_ROOT: _Place = (None, None, 0)


class _Seen:
    """The values that one session has seen, with their sources; and those that it has used before it saw them.

    A source is a call and a place; or the list that an entry has for it, see `_written`.
    """

    __slots__ = ("own", "where")

    def __init__(self) -> None:
        self.where: dict[Any, list[Any]] = {}
        self.own: set[Any] = set()


class Provenance:
    """What the sessions of a process have seen. Only the event loop's thread uses it."""

    def __init__(self) -> None:
        self._sessions = OrderedDict[str, _Seen]()
        self._remembered = 0

    def saw(self, session: str, call: str, result: Json) -> None:
        """Remember the values in the result of a call."""
        where = self._of(session).where
        before, left = len(where), MAX_OF_RESULT
        if type(result) not in (dict, list):
            result, root = [result], None
        else:
            root = _ROOT
        todo: list[tuple[_Place, Any]] = [(_ROOT, result)]
        for place, value in todo:
            is_dict = type(value) is dict
            size = 0 if is_dict else len(value)
            for key, item in islice(value.items() if is_dict else enumerate(value), left):
                kind = type(item)
                if kind is dict or kind is list:
                    if item:
                        todo.append(((place, key, size), item))
                    continue
                # As `_comparable`, without a call for each value.
                if kind is str:
                    if len(item) < 3:
                        continue
                    if len(item) > MAX_COMPARED:
                        item = _comparable(item)
                elif (kind is not int and kind is not float) or -10 < item < 10:
                    continue
                source = (call, (place, key, size) if root else _ROOT)
                sources = where.get(item)
                if sources is None:
                    where[item] = [source]
                else:
                    if len(sources) == MAX_SOURCES:
                        # The first one is kept, and the newest ones.
                        del sources[1]
                    sources.append(source)
            left -= len(value)
            if left <= 0:
                break
        self._grow(len(where) - before)

    def sources(self, session: str, arguments: Mapping[str, Any]) -> dict[str, Json]:
        """The sources of the values in the arguments of a call, by their paths, as the entry of the call contains them."""
        seen = self._of(session)
        where, used = seen.where, seen.own
        by_path: dict[str, Json] = {}
        own, whole = [], "\0"
        for path, value in islice(_leaves(arguments), MAX_OF_ARGUMENTS):
            if path.startswith(whole) or len(by_path) == MAX_RECORDED:
                continue
            if type(value) is list:
                if sources := _of_items(seen, value):
                    by_path[path], whole = sources, f"{path}/"
                continue
            known = _comparable(value)
            if known is None or known in used:
                continue
            if known in where:
                if sources := _written(where[known]):
                    by_path[path] = sources
                continue
            own.append(known)
            if where and type(value) is str and len(value) <= MAX_SEARCHED:
                for token in _TOKEN.finditer(value):
                    part = token[0]
                    if part in where and part not in used and (sources := _written(where[part])):
                        by_path[f"{path}~{token.start()}-{token.end()}"] = sources
        before = len(used)
        used.update(own)
        self._grow(len(used) - before)
        return by_path

    def _of(self, session: str) -> _Seen:
        if session in self._sessions:
            self._sessions.move_to_end(session)
        else:
            self._sessions[session] = _Seen()
        return self._sessions[session]

    def _grow(self, count: int) -> None:
        """Count what is remembered. If that is too much, the session that was idle longest is forgotten."""
        self._remembered += count
        while self._remembered > MAX_REMEMBERED:
            _, idle = self._sessions.popitem(last=False)
            self._remembered -= len(idle.where) + len(idle.own)


def _comparable(value: Json) -> Any:
    """What is equal for equal values; None for a value that is too common to say anything."""
    kind = type(value)
    if kind is str:
        if len(value) <= MAX_COMPARED:
            return value if len(value) > 2 else None
        return len(value), hash(value[:4096]), hash(value[-4096:])
    return value if (kind is int or kind is float) and not -10 < value < 10 else None


def _leaves(arguments: Mapping[str, Any], around: str = "", level: int = 1) -> Iterator[tuple[str, Any]]:
    """The values in arguments, with their paths. A list comes before its items."""
    for key, value in arguments.items():
        if value is None or not _plain(key):
            continue
        kind, path = type(value), around + key
        if kind is not dict:
            yield path, value
        elif level < MAX_LEVELS:
            yield from _leaves(value, f"{path}/", level + 1)
        if kind is list:
            for i, item in enumerate(value):
                if type(item) is not dict:
                    yield f"{path}/{i}", item
                elif level < MAX_LEVELS:
                    yield from _leaves(item, f"{path}/{i}/", level + 1)


def _of_items(seen: _Seen, values: list[Any]) -> list[Json]:
    """The lists in results of which these values are the items, or parts of the items, in the same order."""
    common: list[Json] | None = None
    for i, value in enumerate(values):
        known = _comparable(value) if type(value) not in (dict, list) else None
        if known is None or known in seen.own:
            return []
        here = []
        for call, path, lengths in _written(seen.where.get(known, [])):
            parts, depth = path.split("/"), -1
            for n, part in enumerate(parts):
                depth += part.isdigit()
                if part == str(i) and lengths[depth] >= len(values):
                    here.append([call, "/".join([*parts[:n], "*", *parts[n + 1 :]]), lengths])
        common = here if common is None else [each for each in common if each in here]
        if not common:
            return []
    return common or []


def _written(sources: list[Any]) -> list[Json]:
    """Sources as an entry has them. Each one is replaced by this form, because most values that are used once are used again."""
    for i, source in enumerate(sources):
        if type(source) is tuple:
            sources[i] = _as_recorded(*source)
    return [source for source in sources if source]


def _as_recorded(call: str, place: _Place) -> list[Json]:
    """The call, the path, and the lengths of the lists on it; empty if the path is deep, or has a key that is no name."""
    parts, lengths = list[str](), list[int]()
    while place[0] is not None:
        place, key, size = place
        if size:
            lengths.append(size)
        if (not size and not _plain(key)) or len(parts) == MAX_LEVELS:
            return []
        parts.append(str(key))
    return [call, "/".join(reversed(parts)), lengths[::-1]]


@lru_cache(4096)
def _plain(key: Any) -> bool:
    """Whether a key is a name rather than content, and no secret."""
    return type(key) is str and _NAME.match(key) is not None and redacted_text(key) == key
