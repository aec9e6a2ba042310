"""The host of a URL in a manifest, if it is the same whatever the data is."""

from __future__ import annotations

import re

from albert_tools.engine.model.manifest import Alternative, Value, alternatives_in
from albert_tools.engine.model.visible_text import visible

#: The beginning of a URL up to the end of its host. A name or password before the host could be mistaken for it.
BEGINNING = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#@\\\s]+)", re.IGNORECASE)


def fixed_hosts(value: Value) -> list[str] | None:
    """The hosts of all URLs that a value can be; None if one of them is not fixed."""
    url_hosts = [host_of(one) for one, _ in alternatives_in(value) if isinstance(one, tuple)]
    return None if None in url_hosts else list(dict.fromkeys(host for host in url_hosts if host is not None))


def host_of(url: Alternative) -> str | None:
    """The host of a URL with holes; None if it depends on a hole."""
    start = url[0] if isinstance(url, tuple) and url and isinstance(url[0], str) else ""
    match = BEGINNING.match(start)
    if match is None:
        return None
    ends = start[match.end() :][:1] in ("/", "?", "#") and match.end() < len(start)
    is_whole = isinstance(url, tuple) and all(isinstance(part, str) for part in url) and match.end() == len(start)
    return visible(match[1]) if ends or is_whole else None
