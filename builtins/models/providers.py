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
from typing import Any, NamedTuple

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.nearest_name import did_you_mean, unknown_settings
from albert_tools.engine.policy.model_rules import matches_name

PLACE = "primitives.inference.providers"
_KEYS = ("base_url", "api_key", "models", "price", "prices", "stream", "max_tokens_as")
_MAX_TOKENS_AS = ("max_tokens", "max_completion_tokens")


class Price(NamedTuple):
    """Money per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of a call."""
        return round((self.prompt * prompt_tokens + self.completion * completion_tokens) / 1_000_000, 9)


class Provider(NamedTuple):
    """A configured provider. `api_key` is the name of a secret. If `models` is None, all models are allowed."""

    name: str
    base_url: str
    api_key: str | None = None
    models: tuple[str, ...] | None = None
    price: Price | None = None
    prices: Mapping[str, Price] = {}
    stream: bool = True
    max_tokens_as: str = "max_tokens"

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
        provider = _read(name, known[name])
    except ValueError as error:
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
            _read(str(name), document)
        except ValueError as error:
            yield f"providers.{name}", str(error)


def _read(name: str, document: Any) -> Provider:
    if not isinstance(document, Mapping):
        raise ValueError("it must be a mapping with a base_url")
    for key in document:
        if key not in _KEYS:
            raise ValueError(f"unknown setting {key!r}{did_you_mean(str(key), _KEYS)}")
    url, key, models = document.get("base_url"), document.get("api_key"), document.get("models")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or "?" in url or "#" in url:
        raise ValueError("base_url must begin with http:// or https:// and have no query")
    secret = key.get("secret") if isinstance(key, Mapping) else None
    if key is not None and (not isinstance(secret, str) or set(key) != {"secret"}):
        raise ValueError("api_key must name a secret, {secret: NAME}; the key itself does not belong in a file")
    if models is not None and not (isinstance(models, list) and all(isinstance(m, str) for m in models)):
        raise ValueError("models must be a list of names")
    prices = document.get("prices", {})
    if not isinstance(prices, Mapping):
        raise ValueError("prices must be a mapping by model")
    stream, called = document.get("stream", True), document.get("max_tokens_as", "max_tokens")
    if not isinstance(stream, bool):
        raise ValueError("stream must be true or false")
    if called not in _MAX_TOKENS_AS:
        raise ValueError(f"max_tokens_as must be {' or '.join(_MAX_TOKENS_AS)}")
    return Provider(
        name,
        url.rstrip("/"),
        secret,
        None if models is None else tuple(models),
        _price(document["price"]) if "price" in document else None,
        {str(model): _price(price) for model, price in prices.items()},
        stream,
        called,
    )


def _price(document: Any) -> Price:
    if not isinstance(document, Mapping) or set(document) != {"prompt", "completion"}:
        raise ValueError("a price must be {prompt: …, completion: …}, per million tokens")
    for value in document.values():
        if type(value) not in (int, float) or not 0 <= value < 1e12:
            raise ValueError("a price must be a number, 0 or more")
    return Price(float(document["prompt"]), float(document["completion"]))


def _denied(rule: str, message: str, hint: str, rationale: str) -> Failure:
    return Failure("permission_denied", message, hint=hint, rule=rule, details={"rationale_code": rationale})
