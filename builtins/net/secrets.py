"""Secrets by reference: a program names a secret, and only the outgoing request contains its value.

``{"secret": "GITHUB_TOKEN"}`` refers to a value that the owner stores in the environment variable ``ALBERT_SECRET_GITHUB_TOKEN`` or
in the system's keyring (service ``albert-tools``). The rules state to which hosts the value may be sent. The value is put into a
header when the request is sent. It is never an argument, so no ledger and no journal contains it. A server may echo the value, so
it is removed from the response in all common encodings.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import NotRequired, TypedDict
from urllib.parse import quote, quote_plus

from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure

#: Prefix of environment variables, and service of the keyring.
ENVIRONMENT, SERVICE = "ALBERT_SECRET_", "albert-tools"
#: Characters of a value. A shorter value could occur in a text by chance; a longer value does not fit into a header.
MIN_LENGTH, MAX_LENGTH = 8, 8192

REDACTED = "[redacted]"

#: Characters that most clients do not escape in a URL's query.
_URL_SAFE = "!$&'()*+,;=:@/?~-._"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class SecretReference(TypedDict):
    """``{"secret": "GITHUB_TOKEN", "prefix": "Bearer "}``: the name of a secret, and text before its value."""

    secret: str
    prefix: NotRequired[str]


class Secrets:
    """The secrets of one request."""

    def __init__(self) -> None:
        self._forms: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def longest(self) -> int:
        """Number of characters of the longest encoded form."""
        return max(map(len, self._forms), default=0)

    def take(self, name: str, prefix: str = "") -> str:
        """Returns the value of a header: `prefix`, then the secret. Remembers the encoded forms of the secret.

        Raises:
            Failure: `not_found`: the secret has no value; `invalid_arguments`: the name or the value is unusable.
        """
        value = value_of(name)
        self._forms |= _encoded_forms(value)
        # A server may encode prefix and secret together, as basic authentication does.
        self._forms |= _encoded_forms(prefix + value) if prefix else set()
        return prefix + value

    def out_of_text(self, text: str) -> str:
        """`text` without the secrets."""
        for form in sorted(self._forms, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        return text

    def out_of(self, data: bytes) -> bytes:
        """`data` without the secrets."""
        for form in sorted(self._forms, key=len, reverse=True):
            data = data.replace(form.encode(), REDACTED.encode())
        return data

    def out_of_failure(self, failure: Failure) -> None:
        """Remove the secrets from a failure, which may quote, for example, the URL of a redirect."""
        if self._forms:
            failure.message = self.out_of_text(failure.message)
            failure.hint = self.out_of_text(failure.hint) if failure.hint else failure.hint
            failure.details = {k: self.out_of_text(v) if isinstance(v, str) else v for k, v in failure.details.items()}


def value_of(name: str) -> str:
    """Returns the value of a secret.

    Raises:
        Failure: `not_found`, `invalid_arguments`. The failure never contains the value.
    """
    if not _NAME.match(name):
        raise refused_argument(
            "headers", f"{name[:80]!r} is not the name of a secret: use at most 64 letters, digits and _"
        )
    value = os.environ.get(ENVIRONMENT + name)
    if value is None:
        value = _from_keyring(name)
    if value is None:
        raise Failure(
            "not_found",
            f"the secret {name} has no value",
            hint=f"the owner can set {ENVIRONMENT}{name}, or `keyring set {SERVICE} {name}`",
        )
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH or not all(" " <= c <= "~" for c in value) or value != value.strip():
        raise Failure(
            "invalid_arguments",
            f"the value of the secret {name} can't be sent: it must be {MIN_LENGTH} to {MAX_LENGTH} printable ASCII characters",
            hint="the owner should correct it",
        )
    return value


def _from_keyring(name: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    # A broken keyring is treated like a keyring without the value.
    with suppress(Exception):
        return keyring.get_password(SERVICE, name)
    return None


def _encoded_forms(value: str) -> set[str]:
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
    """The base64 characters that depend only on `raw`, for every position of `raw` in a longer text."""
    import base64

    fragments = set()
    for before in range(3):
        # A character encodes six bits. The first and last characters may also encode bits of the surrounding text.
        text = base64.b64encode(bytes(before) + raw)[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6].decode()
        fragments |= {text, text.translate(str.maketrans("+/", "-_"))}
    return {text for text in fragments if len(text) >= MIN_LENGTH}
