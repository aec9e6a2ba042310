"""The part `sign_in` of a rules file."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from albert_tools.engine.model.session_budget import UNITS, Budget
from albert_tools.engine.policy.sign_in import SignIn, TeamLease, is_protected


def _url(text: str) -> str:
    parts = urlsplit(text)
    if not is_protected(text):
        raise ValueError("an https:// address is expected; http:// only on this machine")
    if not re.fullmatch(r"[!#-;=?-\[\]_a-z~A-Z]+", text) or parts.username or parts.query or parts.fragment:
        raise ValueError("an address without a user, a query or a fragment is expected")
    if parts.netloc != parts.netloc.lower():
        raise ValueError("write the host in lower case, as tokens have it")
    return text


def _scope(text: str) -> str:
    if not re.fullmatch(r"[!#-\[\]-~]+", text):
        raise ValueError("a scope is one word")
    return text


_Url = Annotated[str, Field(max_length=256), AfterValidator(_url)]
_Scope = Annotated[str, Field(max_length=256), AfterValidator(_scope)]
_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Texts = Annotated[list[_Text], Field(max_length=1000)]
_Amount = Annotated[float, Field(ge=0, lt=2**53)]


class _Lease(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: _Text
    #: Required, because without claims a lease would let everybody in.
    claims: dict[_Text, Annotated[_Texts, Field(min_length=1)]] = Field(min_length=1)
    tools: _Texts = None  # type: ignore[assignment]
    budget: dict[Literal[UNITS], _Amount] = {}  # type: ignore[valid-type]
    hours: Annotated[float, Field(ge=0.01, le=8784)] = 24


class _SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    resource: _Url
    issuer: _Url
    scopes: list[_Scope] = []
    leases: list[_Lease] = Field(min_length=1, max_length=100)


class SignInPart(BaseModel):
    """A rules file, as far as this module knows it."""

    sign_in: _SignIn

    def rules(self) -> SignIn:
        """The rules in this part."""
        leases = tuple(
            TeamLease(
                each.name,
                {name: tuple(values) for name, values in each.claims.items()},
                None if each.tools is None else tuple(each.tools),
                Budget(**each.budget),
                each.hours,
            )
            for each in self.sign_in.leases
        )
        return SignIn(self.sign_in.resource, self.sign_in.issuer, leases, tuple(self.sign_in.scopes))
