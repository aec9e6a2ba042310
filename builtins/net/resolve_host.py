"""Resolves a host to the addresses that may be reached.

A name is resolved once per connection, and every address is checked. If one address is forbidden, the connection is refused: a name
with a public and a private address is an attack or a mistake. The connection uses a checked address. Therefore a different answer
to a later lookup (DNS rebinding) has no effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.turns import CLIENT, Turns
from albert_tools.engine.policy.addresses import AddressRules, parsed
from albert_tools.engine.policy.host_rules import FORBIDDEN, UNREACHABLE

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

#: Returns the addresses of a host as text, best first. Raises OSError if the host has no address.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

#: Addresses of one name. A name with more addresses is refused.
MAX_ADDRESSES = 64
#: Addresses to which a connection is tried.
MAX_TRIED = 6

#: The most lookups at the same time, and the most of one session or one mounted server. A lookup that no name server answers keeps
#: its place.
_AT_ONCE, _OF_SESSION = 64, 8
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_AT_ONCE, "albert-names")


async def system_resolver(host: str, port: int) -> list[str]:
    """Resolve with the system's resolver, which includes the hosts file."""
    import asyncio
    import socket

    asking = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    loop = asyncio.get_running_loop()
    turn = _TURNS.setdefault(loop, Turns(_OF_SESSION)).of(CLIENT.get())
    await turn.acquire()
    answers = loop.run_in_executor(_pool(), asking)

    def ended(_: object) -> None:
        turn.release()
        if not answers.cancelled():
            # If the call has ended, nobody else asks for the error.
            answers.exception()

    # A lookup can't be stopped, so it keeps its place after its call.
    answers.add_done_callback(ended)
    return [str(address[0]) for *_, address in await asyncio.shield(answers)]


async def reachable(host: str, port: int, rules: AddressRules, resolve: Resolver) -> list[str]:
    """Returns the addresses to connect to, best first.

    Raises:
        Failure: `permission_denied`: an address is forbidden, or neither public nor named by the rules; `network_error`: the host
            does not exist. In both cases nothing was sent.
    """
    literal = parsed(host)
    if literal is not None:
        addresses: Sequence[str] = [host]
    else:
        try:
            addresses = await resolve(host, port)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error) or "no such host"
            raise Failure("network_error", f"the host {host!r} can't be found: {why}", retryable=True) from None
    if not addresses or len(addresses) > MAX_ADDRESSES:
        raise Failure("network_error", f"the host {host!r} has {len(addresses)} addresses", retryable=not addresses)
    for text in addresses:
        address = parsed(text)
        kind = "disguised" if address is None else rules.refusal(address)
        if kind is not None:
            raise refused(host, text, kind)
    return list(dict.fromkeys(addresses))[:MAX_TRIED]


def refused(host: str, address: str, kind: str) -> Failure:
    """The denial for an address."""
    leads = f"the host {host!r} leads to {address}, which" if host != address else f"{address!r}"
    details = {"rationale_code": "host", "address": address, "kind": kind}
    if kind == "forbidden":
        return Failure("permission_denied", f"{leads} is forbidden", rule=FORBIDDEN.name, details=details)
    return Failure(
        "permission_denied",
        f"{leads} is not a public address ({kind}), and no rule of the owner names it",
        hint="the owner can list it under `allowed_addresses`",
        rule=UNREACHABLE,
        details=details,
    )
