"""What one call may reach on the network, asked as it goes: a redirect leads further, a name to an address, a secret to a host.

The pipeline has judged the URLs that the call names, and a person may have been asked about them. What they lead to is judged
here by the same rules. Nobody is asked in the middle of a call: where the rules would ask, it is refused, and the refusal
names the URL, so that it can be called for by itself. Only a redirect to what the person was asked about, the same method and
host, goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import LOCALHOST, Address, Network, parsed, refusal
from albert_tools.engine.policy.decision import strictest
from albert_tools.engine.policy.host_rules import UNREACHABLE, host_of, is_host
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy


class Outgoing:
    """The rules of the network, for one call of one tool. `urls` are those that the call names, each with its method."""

    __slots__ = ("_definition", "_policy", "_secrets", "_urls", "named")

    def __init__(
        self,
        policy: Policy,
        definition: ToolDefinition,
        urls: list[Resource],
        secrets: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._policy = policy
        self._definition = definition
        self._urls = urls
        self._secrets = secrets
        #: Addresses that the owner's rules name, so that they may be reached though they aren't public.
        self.named: tuple[Network, ...] = policy.named_addresses(definition)

    def demand(self, url: str, method: str, *, by_owner: bool = False) -> None:
        """Let a further URL pass. `by_owner`: it stands in the owner's configuration, which names its host.

        Raises:
            Failure: `permission_denied`, with the URL in `details`.
        """
        found = self._policy.touches(self._definition, [Resource("url", url, method)])
        decision = strictest(found) if found else None
        if decision is None or (decision.verdict == "ask" and (by_owner or decision.subject in self._asked())):
            return
        if by_owner and decision.rule == UNREACHABLE:
            # It names its address, too (`named_by`).
            return
        failure = decision.failure(self._definition.name)
        if decision.verdict == "ask":
            failure.message = f"{decision.message} if it were followed to {_shown(url)}"
            failure.hint = (
                "call it by that URL itself, so that a person can be asked, or let the owner's rules name the host"
            )
        failure.details = {**failure.details, "url": url[:8192]}
        raise failure

    def _asked(self) -> set[str]:
        return {d.subject for d in self._policy.touches(self._definition, self._urls) if d.subject}

    def named_by(self, url: str) -> tuple[Network, ...]:
        """`named`, with the address that a URL of the owner's configuration literally names."""
        host = host_of(url) or ""
        address = parsed(host)
        literal = LOCALHOST if host == "localhost" else _single(address) if address is not None else ()
        return (*self.named, *literal)

    def demand_secret(self, name: str, url: str) -> None:
        """Let a secret go to a URL: to a host that the owner has bound it to, encrypted (or to this very machine).

        Raises:
            Failure: `permission_denied`.
        """
        tool = self._definition.name
        hosts = self._secrets.get(name)
        if hosts is None:
            raise Failure(
                "permission_denied",
                f"the owner's rules know no secret {name[:80]!r}",
                hint=f"the owner can put `secrets: {{{name[:80]}: [api.example.org]}}` into governance.yaml",
                rule="secrets",
                tool=tool,
                details={"rationale_code": "host"},
            )
        host = host_of(url) or ""
        if not any(is_host(host, pattern) for pattern in hosts):
            raise Failure(
                "permission_denied",
                f"the secret {name} is for {', '.join(hosts)}, not for {host!r}",
                hint="send it only there",
                rule=f"secrets.{name}",
                tool=tool,
                details={"rationale_code": "host"},
            )
        address = parsed(host)
        local = host == "localhost" or (
            address is not None and refusal(address, LOCALHOST) is None and address.is_loopback
        )
        if urlsplit(url).scheme.lower() != "https" and not local:
            raise Failure(
                "permission_denied",
                f"the secret {name} is sent encrypted or not at all",
                hint="use https://",
                rule=f"secrets.{name}",
                tool=tool,
                details={"rationale_code": "host"},
            )


def _single(address: Address) -> tuple[Network, ...]:
    from ipaddress import ip_network

    return (ip_network(address),)


def _shown(url: str) -> str:
    """A URL for a sentence: without its query, which may hold anything."""
    parts = urlsplit(url)
    return repr(f"{parts.scheme}://{parts.netloc}{parts.path}"[:300])
