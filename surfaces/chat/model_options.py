"""The model of a chat: from the owner's configuration of providers, or from options.

A configured provider is the same as for the tool `inference`: its address, its models, its price, and the name of its key. The
value of a key is a secret, which is only sent to the hosts that the rules list for it. Without a provider and without an address,
the provider's own package reads its usual variables, such as ``OPENAI_API_KEY``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from urllib.parse import urlsplit

from albert_tools.builtins.models.providers import PLACE, Provider, provider_of
from albert_tools.builtins.net.secrets import Secrets
from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.chat.model import Model
from albert_tools.surfaces.text.usage_error import Usage


def model_of(options: argparse.Namespace, service: ToolService) -> Model:
    """The model that the options and the owner's configuration describe.

    Raises:
        Usage: The options don't determine a model.
        Failure: `permission_denied`: the rules don't allow the provider, its model or its key; `not_found`: the key has no value.
    """
    secrets, key = Secrets(), None
    provider = _provider(options, service)
    if provider is None and options.model is None:
        raise Usage("no model is given", f"give --model, with --api or --base-url; or configure a provider: {PLACE}")
    if provider is None:
        name, address, price, stream = options.model, options.base_url, None, True
        if options.secret is not None:
            key = secrets.take(options.secret)
    else:
        name, address, stream = options.model or (provider.models or ("",))[0], provider.base_url, provider.stream
        price = provider.price_of(name)
        if provider.api_key is not None:
            _demand_secret(service, provider.api_key.secret, address)
            key = secrets.take(provider.api_key.secret)
    api = options.api or ("anthropic" if _is_anthropic(address) else "openai")
    if api == "anthropic":
        from albert_tools.surfaces.chat.anthropic_model import AnthropicModel

        return AnthropicModel(name, address, key, price=price, clean=secrets.out_of_text)
    from albert_tools.surfaces.chat.openai_model import OpenAIModel

    return OpenAIModel(name, address, key, price=price, stream=stream, clean=secrets.out_of_text)


def _provider(options: argparse.Namespace, service: ToolService) -> Provider | None:
    """The configured provider; None if the options name an address or only an interface."""
    if options.base_url is not None:
        if options.provider is not None:
            raise Usage("--provider and --base-url both name the provider", "give one of them")
        if not options.base_url.startswith(("http://", "https://")):
            raise Usage("--base-url must begin with http:// or https://")
        return None
    if options.secret is not None:
        raise Usage("--secret is only for --base-url", "a configured provider names its own key")
    settings = service.ruling().governance.primitives.get("inference", {})
    known = settings.get("providers")
    names = [*map(str, known)] if isinstance(known, Mapping) else []
    if options.provider is None and (not names or options.api is not None):
        return None
    if options.provider is None and len(names) > 1:
        raise Usage(f"several providers are configured: {', '.join(names[:20])}", "choose one with --provider")
    provider = provider_of(settings, options.provider or names[0], options.model)
    if options.model is None and (not provider.models or "*" in provider.models[0]):
        raise Usage(f"the provider {options.provider or names[0]!r} has no first model", "choose one with --model")
    return provider


def _demand_secret(service: ToolService, secret: str, address: str) -> None:
    """Require that the rules allow to send a secret to an address."""
    primitive = service.registry.primitive("inference")
    if primitive is None:
        raise Failure("not_found", "this service has no primitive inference, so its providers can't be used")
    outgoing = service.ruling().authority.outgoing(primitive.definition, primitive, {})
    outgoing.demand_secret(secret, address)


def _is_anthropic(address: str | None) -> bool:
    return f".{urlsplit(address or '').hostname}".endswith(".anthropic.com")
