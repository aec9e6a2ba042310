"""The calls of a mounted server that are under way.

Nobody knows for which of them the server sends a request, so a request must fit the rules and the sessions of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import CallContext, NetworkRules
from albert_tools.engine.policy.addresses import AddressRules


class _Call(NamedTuple):
    #: None if the tool has nothing to do with the network.
    rules: NetworkRules | None
    #: See `CallContext.guard_requests`.
    guard: Callable[[], None]


class CallsUnderWay:
    """The calls of the server `name`. `any` is set while there is one."""

    def __init__(self, name: str) -> None:
        self.any = asyncio.Event()
        #: How many messages a server over HTTP has answered, as one that knows the session.
        self.answered = 0
        self._name = name
        #: By the id of the call's context.
        self._calls: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def begin(self, context: CallContext) -> None:
        """A call begins."""
        self._calls[id(context)] = _Call(context.network, context.guard_requests())
        self.any.set()

    def end(self, context: CallContext) -> None:
        """A call has ended."""
        del self._calls[id(context)]
        if not self._calls:
            self.any.clear()

    def demand(self, url: str, method: str) -> None:
        """Refuse a request. Raises Failure `permission_denied`."""
        for rules in self._rules():
            rules.demand(url, method, by_owner=True)

    def demand_session(self) -> None:
        """Refuse to send more, because of what the session of a call has seen meanwhile. Raises Failure `permission_denied`."""
        try:
            for call in self._calls.values():
                call.guard()
        except Failure as failure:
            # The session of the other calls must not read what this one has seen.
            why = (
                f"{self._name} may send nothing: the session of a call that is under way has seen what a rule is about"
            )
            raise Failure("permission_denied", why, rule=failure.rule) from None

    def address_rules(self, *urls: str) -> AddressRules:
        """The rules on addresses, which also permit the literal addresses in `urls`, the URLs that the owner has mounted."""
        rules: dict[AddressRules, None] = dict.fromkeys(each.address_rules_for(*urls) for each in self._rules())
        return reduce(AddressRules.limited_by, rules)

    def _rules(self) -> list[NetworkRules]:
        rules = [call.rules for call in self._calls.values() if call.rules is not None]
        if not rules or len(rules) < len(self._calls):
            raise Failure("permission_denied", "no rules for the network apply here", rule="network")
        return rules
