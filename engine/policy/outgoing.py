"""Applies the network rules while a call runs: to redirects, addresses, and hosts that receive secrets.

Before the call, the pipeline has checked the URLs and the secrets in its arguments, and maybe a person has approved them. This
module applies the same rules to the URLs that follow, such as redirects. A person can't be asked during a call. So if a rule
would ask, the call is denied, and the denial contains the URL, so that the agent can call it directly. A redirect is followed only
if no rule objects, or if the person has approved its method and host.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.policy.addresses import LOCALHOST, AddressRules, networks_of, parsed
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.policy.host_rules import UNREACHABLE, host_of, is_host
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy


class Outgoing:
    """The network rules for one call of one tool. `urls` are the URLs in its arguments, each with its method."""

    __slots__ = ("_definition", "_policy", "_urls", "address_rules", "asked")

    def __init__(
        self,
        policy: Policy,
        definition: ToolDefinition,
        urls: list[Resource],
    ) -> None:
        self._policy = policy
        self._definition = definition
        self._urls = urls
        self.address_rules: AddressRules = policy.address_rules(definition)
        #: The first URL that the rules have permitted.
        self.asked: str | None = None

    def demand(self, url: str, method: str, *, by_owner: bool = False) -> None:
        """Require that the rules permit another URL. `by_owner`: the owner's configuration contains the URL, which permits its
        host.

        Raises:
            Failure: `permission_denied`, with the URL in `details`.
        """
        objections = self._policy.touches(self._definition, [Resource("url", url, method)])
        decision = strictest(objections) if objections else None
        if decision is None or self._is_permitted(decision, by_owner):
            self.asked = self.asked or url
            return
        failure = decision.failure(self._definition.name)
        if decision.verdict == "ask":
            failure.message = f"{decision.message} by following {_shown(url)}"
            failure.hint = "call that URL directly, so that a person can be asked, or ask the owner to list the host"
        failure.details = {**failure.details, "url": url[:8192]}
        raise failure

    def _is_permitted(self, decision: Decision, by_owner: bool) -> bool:
        """Whether the owner's configuration or a person's answer outweighs a decision."""
        if by_owner and decision.rule == UNREACHABLE:
            # The configuration also permits the address (`address_rules_for`).
            return True
        return decision.verdict == "ask" and (by_owner or decision.subject in self._asked())

    def _asked(self) -> set[str]:
        return {d.subject for d in self._policy.touches(self._definition, self._urls) if d.subject}

    def address_rules_for(self, *urls: str) -> AddressRules:
        """`address_rules`, which also permit the literal addresses in `urls`, the URLs of the owner's configuration."""
        literal = [network for url in urls for network in networks_of(host_of(url) or "")]
        return self.address_rules._replace(named=(*self.address_rules.named, *literal))

    def demand_secret(self, name: str, url: str) -> None:
        """Require that a secret may be sent to a URL. Its host must be listed for the secret, and the URL must be encrypted or
        local.

        Raises:
            Failure: `permission_denied`.
        """
        hosts, rule = self._policy.secrets.get(name), f"secrets.{name}"
        if hosts is None:
            hint = f"the owner can add `secrets: {{{name[:80]}: [HOST]}}` to governance.yaml"
            raise self._no_secret("secrets", f"the owner's rules have no secret {name[:80]!r}", hint)
        host = host_of(url) or ""
        if not any(is_host(host, pattern) for pattern in hosts):
            message = f"the secret {name} may be sent to {', '.join(hosts)}, not to {host!r}"
            raise self._no_secret(rule, message, f"the owner can add the host to `{rule}` in governance.yaml")
        address = parsed(host)
        local = host == "localhost" or (
            address is not None and AddressRules(LOCALHOST).refusal(address) is None and address.is_loopback
        )
        if urlsplit(url).scheme.lower() != "https" and not local:
            raise self._no_secret(rule, f"the secret {name} may only be sent encrypted", "use https://")

    def _no_secret(self, rule: str, message: str, hint: str) -> Failure:
        return Decision("deny", rule, "host", message, hint).failure(self._definition.name)


def _shown(url: str) -> str:
    """A URL for a message, without its query, which may contain sensitive data."""
    parts = urlsplit(url)
    return repr(f"{parts.scheme}://{parts.netloc}{parts.path}"[:300])
