"""The rules about people who sign in with the account that they have at their team's identity provider.

The provider signs a token for the person, with claims such as the person's groups. The rules say which claims get which lease: the
first lease whose claims are in the token applies. A person without one has no access.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from albert_tools.engine.model.session_budget import Budget

#: The claims that are lists of words, as OAuth and some providers name them.
_SCOPES = ("scope", "scp")


class TeamLease(Struct, frozen=True):
    """The lease of people whose token has one of the listed values in each of these `claims`. See `authority.sessions.Lease`.

    `hours` is how long a session lives at most. The token may expire earlier.
    """

    name: str
    claims: Mapping[str, tuple[str, ...]]
    tools: tuple[str, ...] | None = None
    budget: Budget = field(default_factory=Budget)
    hours: float = 24


class SignIn(Struct, frozen=True):
    """Who may sign in.

    `resource` is the server's URL, for which tokens must be issued, and `issuer` the URL of the identity provider. Every token must
    have all the `scopes`.
    """

    resource: str
    issuer: str
    leases: tuple[TeamLease, ...]
    scopes: tuple[str, ...] = ()

    def missing_scopes(self, claims: Mapping[str, Any]) -> list[str]:
        """The scopes that a token lacks, by its claims."""
        have = values_of(claims, "scope") | values_of(claims, "scp")
        return [scope for scope in self.scopes if scope not in have]

    def lease_of(self, claims: Mapping[str, Any]) -> TeamLease | None:
        """The first lease that fits the claims of a token; None if no lease fits."""
        for lease in self.leases:
            if all(values_of(claims, name) & {*values} for name, values in lease.claims.items()):
                return lease
        return None

    def terms(self, lease: TeamLease) -> str:
        """A hash of a lease with all that decides who gets it. A session ends if the rules don't have its terms any more."""
        parts = [self.issuer, self.resource, self.scopes, lease]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]


def values_of(claims: Mapping[str, Any], name: str) -> set[str]:
    """The texts of a claim. Anything else in it fits no rule."""
    value = claims.get(name)
    if isinstance(value, str):
        return {*value.split(" ")} if name in _SCOPES else {value}
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def is_protected(url: str) -> bool:
    """Whether nobody else can read or change what is sent to an address: by TLS, or because it stays on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "http":
        return parts.scheme == "https" and bool(parts.hostname)
    try:
        return parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
