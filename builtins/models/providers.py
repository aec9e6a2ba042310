"""The providers of models in the owner's configuration.

::

    primitives:
      inference:
        providers:
          local: {base_url: "http://127.0.0.1:11434/v1"}
          example:
            base_url: https://api.example.org/v1
            api_key: {secret: EXAMPLE_KEY}            # the value is a secret, bound to hosts (`secrets:`)
            models: [small-*, large]                  # allowed models; default all
            price: {prompt: 0.5, completion: 1.5}     # per million tokens, in the currency of budgets
            prices: {large: {prompt: 5, completion: 15}}
            stream: true                              # whether answers are streamed
            max_tokens_as: max_tokens                 # name of that parameter: or max_completion_tokens

A call is denied if its provider is unknown or its model is not allowed. If the configuration of a provider has a mistake, all its
models are denied, because the mistake may have been meant as a restriction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean, unknown_settings
from albert_tools.engine.policy.model_rules import matches_name

PLACE = "primitives.inference.providers"
#: An amount of money.
Amount = Annotated[float, Meta(ge=0, lt=1e12)]


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """Money per million tokens."""

    prompt: Amount
    completion: Amount

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of a call."""
        return round((self.prompt * prompt_tokens + self.completion * completion_tokens) / 1_000_000, 9)


class Key(Struct, frozen=True, forbid_unknown_fields=True):
    """The key of a provider. `secret` is its name."""

    secret: str


class Provider(Struct, frozen=True):
    """A configured provider. If `models` is None, all models are allowed."""

    base_url: Annotated[str, Meta(pattern="^https?://[^?#]+$")]
    api_key: Key | None = None
    models: tuple[str, ...] | None = None
    price: Price | None = None
    prices: dict[str, Price] = {}
    stream: bool = True
    max_tokens_as: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def price_of(self, model: str) -> Price | None:
        """The price of a model; None if the owner set no price."""
        return self.prices.get(model, self.price)


def provider_of(settings: Mapping[str, Any], name: str, model: str | None) -> Provider:
    """Returns the provider with that name, if it allows the model. None means that no model is chosen yet.

    Raises:
        Failure: `permission_denied`.
    """
    providers = settings.get("providers")
    known = providers if isinstance(providers, Mapping) else {}
    if name not in known:
        raise _denied(
            PLACE,
            f"no provider {name[:100]!r} is configured{did_you_mean(name, [str(k) for k in known])}",
            f"the owner can add it to governance.yaml under {PLACE}",
            "provider",
        )
    place = f"{PLACE}.{name}"
    try:
        provider = _read(known[name])
    except ValidationError as error:
        raise _denied(
            place, f"the configuration of {name!r} has a mistake: {error}", "the owner should correct it", "provider"
        ) from None
    if (
        model is not None
        and provider.models is not None
        and not any(matches_name(model, pattern) for pattern in provider.models)
    ):
        raise _denied(
            f"{place}.models",
            f"{model[:100]!r} is not among the models of {name!r}: {', '.join(provider.models[:20]) or 'none'}",
            "use one of these, or ask the owner to add it",
            "model",
        )
    return provider


def wrong_settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the mistakes in the owner's settings, each as its place and a message."""
    known = ("providers", "ca_file")
    yield from unknown_settings(settings, known)
    if not isinstance(settings.get("ca_file", ""), str):
        yield "ca_file", "expected the path of a file"
    providers = settings.get("providers", {})
    if not isinstance(providers, Mapping):
        yield "providers", "expected providers by name: {local: {base_url: …}}"
        return
    for name, document in providers.items():
        try:
            _read(document)
        except ValidationError as error:
            yield f"providers.{name}", str(error)


def _read(document: Any) -> Provider:
    if isinstance(document, Mapping):
        # msgspec refuses an unknown name only in a dict.
        for name, message in unknown_settings(document, Provider.__struct_fields__):
            raise ValidationError(f"{name}: {message}")
        if isinstance(document.get("api_key"), str):
            raise ValidationError(
                "api_key must name a secret, {secret: NAME}; the key itself does not belong in a file"
            )
    return convert(document, Provider)


def _denied(rule: str, message: str, hint: str, rationale: str) -> Failure:
    return Failure("permission_denied", message, hint=hint, rule=rule, details={"rationale_code": rationale})
