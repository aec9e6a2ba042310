"""Secrets by reference: a program names one, and only the request that goes out holds it.

``{"secret": "GITHUB_TOKEN"}`` stands for a value that whoever owns the machine keeps, in the environment variable
``ALBERT_SECRET_GITHUB_TOKEN`` or in the system's keyring (service ``albert-tools``), and that the rules bind to hosts. The
value is put into a header in the moment the request is made. It is in no argument, so in no ledger and no journal; and from
what comes back it is taken out again, in whatever common spelling a server may echo it, before anybody sees it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import NotRequired, TypedDict
from urllib.parse import quote, quote_plus

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: Where values are looked for.
ENVIRONMENT, SERVICE = "ALBERT_SECRET_", "albert-tools"
#: Characters of a value: less could be met anywhere by chance, and more is no header.
MIN_LENGTH, MAX_LENGTH = 8, 8192

REDACTED = "[redacted]"

#: What stays as it is in a URL's query, as most clients write it.
_URL_SAFE = "!$&'()*+,;=:@/?~-._"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class SecretReference(TypedDict):
    """``{"secret": "GITHUB_TOKEN", "prefix": "Bearer "}``: a value that only the owner knows, and what goes before it."""

    secret: str
    prefix: NotRequired[str]


class Secrets:
    """The values that one request holds."""

    def __init__(self) -> None:
        self._forms: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def longest(self) -> int:
        """Characters of the longest spelling."""
        return max(map(len, self._forms), default=0)

    def take(self, name: str, prefix: str = "") -> str:
        """A header's value, with `prefix` before the secret; its spellings are remembered.

        Raises:
            Failure: `not_found`: there is no value; `invalid_arguments`: it can't be one.
        """
        value = value_of(name)
        self._forms |= _spellings(value)
        # What basic authentication sends, and what is echoed as one piece.
        self._forms |= _spellings(prefix + value) if prefix else set()
        return prefix + value

    def out_of_text(self, text: str) -> str:
        """`text` without any of them."""
        for form in sorted(self._forms, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        return text

    def out_of(self, data: bytes) -> bytes:
        """`data` without any of them."""
        for form in sorted(self._forms, key=len, reverse=True):
            data = data.replace(form.encode(), REDACTED.encode())
        return data

    def out_of_failure(self, failure: Failure) -> None:
        """Take them out of what a failure says: a redirect, say, may lead to a URL that holds one."""
        if self._forms:
            failure.message = self.out_of_text(failure.message)
            failure.hint = self.out_of_text(failure.hint) if failure.hint else failure.hint
            failure.details = {k: self.out_of_text(v) if isinstance(v, str) else v for k, v in failure.details.items()}


def value_of(name: str) -> str:
    """The value that the machine keeps under a name.

    Raises:
        Failure: `not_found`, `invalid_arguments`. Never with the value in it.
    """
    if not _NAME.match(name):
        raise refused_argument("headers", f"{name[:80]!r} can't be a secret's name: letters, digits and _, at most 64")
    value = os.environ.get(ENVIRONMENT + name)
    if value is None:
        value = _from_keyring(name)
    if value is None:
        raise Failure(
            "not_found",
            f"nobody has given the secret {name} a value",
            hint=f"the owner can set {ENVIRONMENT}{name}, or `keyring set {SERVICE} {name}`",
        )
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH or not all(" " <= c <= "~" for c in value) or value != value.strip():
        raise Failure(
            "invalid_arguments",
            f"the value of the secret {name} can't be sent: it must be {MIN_LENGTH} to {MAX_LENGTH} printable ASCII characters",
            hint="the owner should mend it",
        )
    return value


def _from_keyring(name: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    # What is wrong with a keyring says nothing about the value.
    with suppress(Exception):
        return keyring.get_password(SERVICE, name)
    return None


def _spellings(value: str) -> set[str]:
    import base64
    import html
    import json

    raw = value.encode()
    quoted = {quote(value, safe=safe) for safe in ("", "/", _URL_SAFE)} | {quote_plus(value)}
    quoted |= {re.sub("%..", lambda code: code[0].lower(), each) for each in quoted}
    escaped = {json.dumps(value)[1:-1], json.dumps(value)[1:-1].replace("/", "\\/"), html.escape(value)}
    coded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(), raw.hex().upper()}
    return {value} | quoted | escaped | coded | {c.rstrip("=") for c in coded} | _within_base64(raw)


def _within_base64(raw: bytes) -> set[str]:
    """The characters that stand for it alone in the base64 of a longer text, wherever in that it begins."""
    import base64

    found = set()
    for before in range(3):
        # Six bits are a character: the first ones are shared with what stands before it, the last with what follows.
        text = base64.b64encode(bytes(before) + raw)[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6].decode()
        found |= {text, text.translate(str.maketrans("+/", "-_"))}
    return {text for text in found if len(text) >= MIN_LENGTH}
