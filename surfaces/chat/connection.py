"""The HTTP connection to a provider, and its errors as failures. Both providers' packages are built alike, so both use this.

Redirects are not followed, because a key must only reach the host that it is for. The size of a response is bounded, because the
packages' decoders read without a limit.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2

from albert_tools.builtins.models.answers import error_of, failed
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MiB

#: Bytes of one response. The text of an answer is much smaller, but each piece has an envelope.
MAX_RESPONSE = 64 * MiB


class _Bounded(httpx2.AsyncByteStream):
    """A response that ends with an error after `MAX_RESPONSE` bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_RESPONSE
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise Failure("too_large", f"the provider sent more than {MAX_RESPONSE:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)


def http_client() -> httpx2.AsyncClient:
    """The client for a provider's package, which sets its own times to wait."""
    return httpx2.AsyncClient(verify=_certificates(), follow_redirects=False, event_hooks={"response": [_bound]})


@cache
def _certificates() -> ssl.SSLContext:
    """The trusted certificates. They are loaded once, because that takes longer than all else that a client does at its start."""
    return httpx2.create_ssl_context()


@contextmanager
def failures(model: str, clean: Callable[[str], str]) -> Iterator[None]:
    """Raise every error of a provider or its package as a `Failure`. `clean` removes the key from texts of the provider."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        raise _failure(error, model, clean) from error


def _failure(error: Exception, model: str, clean: Callable[[str], str]) -> Failure:
    if isinstance(error.__cause__, Failure):
        return error.__cause__
    status: Any = getattr(error, "status_code", None)
    if isinstance(status, int) or getattr(error, "body", None):
        message, code = error_of(getattr(error, "body", None))
        after = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
        milliseconds = int(after) * 1000 if after.isdecimal() and len(after) < 7 else None
        return failed(status or 200, clean(message), clean(code), milliseconds, model)
    name = type(error).__name__
    if "Timeout" in name:
        return Failure("timeout", "the provider does not answer in time", hint="try again later", retryable=True)
    if "Connect" in name or isinstance(error, httpx2.HTTPError):
        why = clean(str(error.__cause__ or error))[:200]
        hint = "check the address of the provider, and the network"
        return Failure("network_error", f"the connection to the provider failed: {why}", hint=hint, retryable=True)
    return Failure("service_error", f"the provider sent an invalid answer: {name}: {clean(str(error))[:200]}")
