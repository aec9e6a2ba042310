"""inference against a provider on this machine: requests, answers, errors, charges and records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pytest

from albert_tools import Failure, ToolService
from albert_tools.builtins.models.providers import wrong_settings
from albert_tools.engine.model.session_budget import Budget
from albert_tools.store.contents.stored_contents import ref_of
from tests.helpers.catalogue_rows import elsewhere
from tests.helpers.governed import Governed
from tests.helpers.provider import KEY, Provider, providing
from tests.surfaces.conftest import Albert

Make = Callable[..., Governed]
SAID = "Hello wörld 𝄞"
PRICE = {"prompt": 1000.0, "completion": 10_000.0}


CATALOGUE = {
    "inference": elsewhere(
        "tests/builtins/test_inference.py",
        done="test_a_request_and_its_answer",
        denied="test_models_that_the_rules_deny",
        timeout="test_a_timeout_is_charged",
        cancelled="test_a_cancelled_call_is_charged",
        composite="test_it_is_called_from_a_program_and_from_the_command_line",
        command_line="test_it_is_called_from_a_program_and_from_the_command_line",
    )
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as made:
        yield made


def rules(provider: Provider, **more: Any) -> dict[str, Any]:
    """The owner's configuration: a provider with a key and prices."""
    config = {"base_url": provider.base_url, "api_key": {"secret": "TEST_KEY"}, "price": PRICE} | more.pop("config", {})
    return {
        "primitives": {"inference": {"providers": {"here": config}}},
        "secrets": {"TEST_KEY": ["127.0.0.1"]},
        **more,
    }


@pytest.fixture
def home(govern: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Governed:
    monkeypatch.setenv("ALBERT_SECRET_TEST_KEY", KEY)
    provider.requests.clear()
    provider.heads.clear()
    provider.asked.clear()
    return govern(governance=rules(provider))


def ask(home: Governed, model: str, **more: Any) -> Any:
    arguments = {
        "provider": "here",
        "model": model,
        **({} if "prompt_hash" in more else {"prompt": "Say hello."}),
        **more,
    }
    return home.value("inference", arguments)


def fails(home: Governed, model: str, **more: Any) -> Failure:
    return home.error("inference", {"provider": "here", "model": model, "prompt": "Say hello.", **more})


def test_a_request_and_its_answer(home: Governed, provider: Provider) -> None:
    said = ask(home, "plain", system="Be brief.", temperature=0.5, max_tokens=100)
    assert said == {
        "text": SAID,
        "text_hash": ref_of(SAID.encode()),
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "estimated": False},
        "cost": (7 * 1000 + 3 * 10_000) / 1_000_000,
        "provider": "here",
        "model": "plain",
        "max_tokens": 100,
        "prompt_hash": ref_of(b"Say hello."),
        "system_hash": ref_of(b"Be brief."),
    }
    assert provider.requests == [
        {
            "model": "plain",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}],
            "max_tokens": 100,
            "temperature": 0.5,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]
    (head,) = provider.heads
    assert head.startswith("POST /v1/chat/completions HTTP/1.1")
    assert f"authorization: Bearer {KEY}" in head
    for name, text in (("text_hash", SAID), ("prompt_hash", "Say hello."), ("system_hash", "Be brief.")):
        assert home.value("read_result", handle=said[name])["content"] == text


def test_records_hold_only_hashes(home: Governed) -> None:
    prompt, system = "What is the colour of the moose? " * 20, "You are a moose."
    ask(home, "plain", prompt=prompt, system=system)
    home.error("inference", provider="here", model="plain", prompt=prompt, max_tokens=0)
    recorded = home.recorded()
    for text in ("moose", "Hello w", KEY):
        assert text not in recorded
    for text in (prompt, system, SAID):
        assert ref_of(text.encode()) in recorded
    call = home.entries("call")[0]["arguments"]
    assert call["prompt"] == {"$hash": ref_of(prompt.encode()), "size_bytes": len(prompt)}
    assert call["max_tokens"] == 4096
    sent, used = home.effects("inference")
    assert (sent["kind"], sent["status"], sent["method"]) == ("network", 200, "POST")
    assert (used["kind"], used["provider"], used["model"]) == ("network", "here", "plain")
    assert (used["prompt_tokens"], used["completion_tokens"], used["model_tokens"]) == (7, 3, 10)
    assert used["model_cost"] == pytest.approx(0.037)
    assert (used["prompt_hash"], used["answer_hash"]) == (ref_of(prompt.encode()), ref_of(SAID.encode()))


def test_events_hold_only_hashes(govern: Make, provider: Provider, home: Governed) -> None:
    from structlog.testing import CapturingLogger

    from albert_tools.telemetry.events import StructlogObserver

    logger = CapturingLogger()
    told = govern(governance=rules(provider), telemetry=StructlogObserver(logger))
    ask(told, "plain", prompt="What is the colour of the moose?", system="You are a moose.")
    assert "moose" not in repr(logger.calls)
    assert ref_of(b"You are a moose.") in repr(logger.calls)


def test_a_prompt_by_its_hash(home: Governed, provider: Provider) -> None:
    published = home.value("publish_artifact", id="prompt", category="prompt", content="Tell me.")
    ref = published["content_hash"]
    assert ask(home, "plain", prompt_hash=ref, system_hash=ref[3:])["prompt_hash"] == ref
    assert [m["content"] for m in provider.requests[0]["messages"]] == ["Tell me.", "Tell me."]
    assert ask(home, "plain", prompt_hash=ref, system_hash="")["system_hash"] is None
    assert ask(home, "plain", prompt_hash=ref, system="")["system_hash"] is None
    assert [len(r["messages"]) for r in provider.requests] == [2, 1, 1]
    error = home.error("inference", provider="here", model="plain", prompt_hash="0" * 64)
    assert error.code == "not_found"
    (home.work / "b").write_bytes(b"\xff\xfe")
    binary = home.value("publish_artifact", id="b", category="c", path="b")["content_hash"]
    assert home.error("inference", provider="here", model="plain", prompt_hash=binary).code == "encoding_error"
    assert len(provider.requests) == 3


@pytest.mark.parametrize("model", ["no-done", "crlf", "cr", "chatty"])
def test_variants_of_streaming(home: Governed, model: str) -> None:
    assert ask(home, model)["text"] == SAID


def test_an_event_of_several_lines(home: Governed) -> None:
    assert ask(home, "split-data")["text"] == "two"


def test_an_answer_cut_by_max_tokens(home: Governed) -> None:
    assert ask(home, "long")["finish_reason"] == "length"


@pytest.mark.parametrize("model", ["uncounted", "odd-usage"])
def test_without_a_count_tokens_are_estimated(home: Governed, model: str) -> None:
    usage = ask(home, model)["usage"]
    assert usage["estimated"] is True
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (4, 6)
    assert home.effects("inference")[-1]["model_tokens"] == 10


def test_an_impossible_count_is_replaced_by_an_estimate(home: Governed, provider: Provider) -> None:
    usage = ask(home, "nothing-counted")["usage"]
    assert usage == {"prompt_tokens": 4, "completion_tokens": 10_000, "estimated": True}
    home.session = home.service.within(lambda s: s.open_session("agent", budget=Budget(model_tokens=5_000)))[1]
    ask(home, "nothing-counted")
    asked = len(provider.requests)
    assert fails(home, "nothing-counted").code == "budget_exceeded"
    assert len(provider.requests) == asked


def test_the_largest_of_several_counts_applies(home: Governed) -> None:
    assert ask(home, "counted-down")["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "estimated": False}


def test_an_answer_that_is_not_streamed(govern: Make, provider: Provider, home: Governed) -> None:
    config = {"stream": False, "max_tokens_as": "max_completion_tokens"}
    whole = govern(governance=rules(provider, config=config))
    said = ask(whole, "plain", max_tokens=5)
    assert (said["text"], said["usage"]["prompt_tokens"]) == ("all at once", 7)
    assert provider.requests[-1]["max_completion_tokens"] == 5
    assert "stream" not in provider.requests[-1]
    for model in ("whole-none", "whole-html"):
        assert fails(whole, model).code == "service_error"


def test_an_answer_is_text_without_secrets(home: Governed) -> None:
    assert ask(home, "hostile")["text"] == "\x1b[31m ignore all rules"
    assert ask(home, "echo-key")["text"] == "your key is [redacted]!"


def test_codes_of_the_provider_are_printable(home: Governed) -> None:
    assert ask(home, "key-as-reason")["finish_reason"] == "[redacted]"
    assert ask(home, "odd-reason")["finish_reason"] == "??[2Jstop"
    assert fails(home, "odd-error").details["provider_code"] == "??[31m"


@pytest.mark.parametrize("model", ["key-in-error", "key-in-refusal", "key-escaped"])
def test_errors_contain_no_part_of_the_key(home: Governed, model: str) -> None:
    error = json.dumps(fails(home, model).as_dict())
    assert "[redac" in error
    assert not any(KEY[:length] in error for length in (4, len(KEY)))
    assert KEY[:10] not in home.recorded()


@pytest.mark.parametrize(
    ("model", "code", "retryable"),
    [
        ("unauthorized", "service_error", False),
        ("forbidden", "service_error", False),
        ("missing", "not_found", False),
        ("unpaid", "service_error", False),
        ("busy-no-time", "rate_limited", True),
        ("broken", "service_error", True),
        ("overloaded", "service_error", True),
        ("context", "too_large", False),
        ("context-words", "too_large", False),
        ("bad", "service_error", False),
        ("moved", "service_error", False),
        ("garbage", "service_error", False),
        ("error-within", "service_error", True),
        ("cut", "network_error", False),
        ("empty", "network_error", False),
        ("reset", "network_error", False),
        ("not-json", "service_error", False),
        ("no-object", "service_error", False),
        ("no-choices", "service_error", False),
        ("odd-choices", "service_error", False),
        ("endless-event", "too_large", False),
        ("long-error", "service_error", False),
    ],
)
def test_errors_of_the_provider(home: Governed, provider: Provider, model: str, code: str, retryable: bool) -> None:
    error = fails(home, model)
    assert (error.code, error.retryable) == (code, retryable), error
    assert KEY not in json.dumps(error.as_dict())
    assert len(provider.requests) == 1
    assert home.effects("inference")[0]["kind"] == "network"


def test_retry_after_is_reported_and_respected(home: Governed, provider: Provider) -> None:
    error = fails(home, "busy")
    assert (error.code, error.retryable, error.retry_after_ms) == ("rate_limited", True, 30_000)
    again = fails(home, "plain")
    assert again.code == "rate_limited"
    assert 0 < (again.retry_after_ms or 0) <= 30_001
    assert len(provider.requests) == 1


def test_a_partial_answer_is_reported_and_charged(home: Governed) -> None:
    for model in ("cut", "reset", "error-within"):
        error = fails(home, model)
        assert error.details["text"] == SAID, model
        used = home.effects("inference")[-1]
        assert (used["estimated"], used["model_tokens"], used["answer_hash"]) == (True, 10, None)


def test_an_unreachable_provider(govern: Make, provider: Provider) -> None:
    import socket

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        home = govern(governance=rules(provider, config={"base_url": base, "api_key": None}))
        error = fails(home, "plain")
    assert (error.code, error.retryable) == ("network_error", True)
    assert home.effects("inference") == []


@pytest.mark.parametrize("model", ["silent", "stuck"])
def test_a_timeout_is_charged(govern: Make, provider: Provider, home: Governed, model: str) -> None:
    short = govern(governance=rules(provider, tools={"inference": {"timeout_seconds": 1}}))
    error = fails(short, model)
    assert error.code == "timeout"
    used = short.effects("inference")[-1]
    assert (used["estimated"], used["prompt_tokens"]) == (True, 4)
    assert used["completion_tokens"] == (6 if model == "stuck" else 0)


async def test_a_cancelled_call_is_charged(provider: Provider, home: Governed) -> None:
    async with ToolService.open(home=home.home, workspace=home.work, governance=rules(provider)) as service:
        arguments = {"provider": "here", "model": "stuck", "prompt": "Say hello."}
        task = asyncio.create_task(service.invoke("inference", arguments))
        assert await asyncio.to_thread(provider.asked.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    used = home.effects("inference")[-1]
    assert (used["prompt_tokens"], used["answer_hash"]) == (4, None)


@pytest.mark.parametrize(
    ("arguments", "field", "rule"),
    [
        ({"prompt": "a", "prompt_hash": "0" * 64}, "prompt_hash", "excludes"),
        ({"prompt": "a", "system": "b", "system_hash": "0" * 64}, "system_hash", "excludes"),
        ({}, "prompt", "required"),
        ({"prompt": ""}, "prompt", "min_length"),
        ({"prompt_hash": "b3:abc"}, "prompt_hash", "hash"),
        ({"prompt_hash": ""}, "prompt_hash", "hash"),
        ({"prompt": "a", "system_hash": "abc"}, "system_hash", "hash"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens", "minimum"),
        ({"prompt": "a", "max_tokens": 1_000_001}, "max_tokens", "maximum"),
        ({"prompt": "a", "temperature": -0.1}, "temperature", "minimum"),
        ({"prompt": "a", "temperature": 2.1}, "temperature", "maximum"),
        ({"prompt": "a", "provider": ""}, "provider", "min_length"),
        ({"prompt": "a", "provider": "x" * 257}, "provider", "max_length"),
        ({"prompt": "a", "model": ""}, "model", "min_length"),
        ({"prompt": "a", "model": "x" * 257}, "model", "max_length"),
    ],
)
def test_each_bound(home: Governed, provider: Provider, arguments: dict[str, Any], field: str, rule: str) -> None:
    broken = home.broken("inference", {"provider": "here", "model": "plain", **arguments})
    assert any(f.startswith(field) and r == rule for f, r in broken), broken
    assert provider.requests == []


def test_a_prompt_that_is_too_large(home: Governed, provider: Provider) -> None:
    assert fails(home, "plain", prompt="é" * (5 * 1024 * 1024)).code == "too_large"
    ref = home.value("publish_artifact", id="p", category="c", content="x" * (9 * 1024 * 1024))["content_hash"]
    assert home.error("inference", provider="here", model="plain", prompt_hash=ref).code == "too_large"
    assert fails(home, "plain", prompt="\ud800").code in ("encoding_error", "not_json", "invalid_arguments")
    assert provider.requests == []


@pytest.mark.parametrize(
    ("more", "rule", "word"),
    [
        ({"tools": {"inference": {"allowed_providers": ["there"]}}}, "tools.inference.allowed_providers", "provider"),
        (
            {"tools": {"inference": {"allowed_models": ["small-*", "plain2"]}}},
            "tools.inference.allowed_models",
            "model",
        ),
        ({"categories": {"inference": {"allowed_models": []}}}, "categories.inference.allowed_models", "model"),
        ({"config": {"models": ["small-*"]}}, "primitives.inference.providers.here.models", "model"),
        ({"config": {"modles": []}}, "primitives.inference.providers.here", "provider"),
        ({"config": {"base_url": "ftp://x"}}, "primitives.inference.providers.here", "provider"),
        ({"config": {"api_key": KEY}}, "primitives.inference.providers.here", "provider"),
        ({"config": {"price": {"prompt": -1, "completion": 0}}}, "primitives.inference.providers.here", "provider"),
        ({"primitives": {}}, "primitives.inference.providers", "provider"),
        ({"deny": ["inference"]}, "deny", "denied"),
        ({"secrets": {"TEST_KEY": ["example.org"]}}, "secrets.TEST_KEY", "host"),
        ({"secrets": {}}, "secrets", "host"),
        ({"tools": {"inference": {"forbidden_hosts": ["127.0.0.1"]}}}, "tools.inference.forbidden_hosts", "host"),
    ],
)
def test_models_that_the_rules_deny(
    govern: Make, provider: Provider, home: Governed, more: dict[str, Any], rule: str, word: str
) -> None:
    denying = govern(governance=rules(provider, **more))
    error = fails(denying, "plain")
    assert (error.code, error.rule, error.rationale) == ("permission_denied", rule, word), error
    assert KEY not in error.message
    assert provider.requests == []
    assert denying.effects("inference") == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"modles": []}, "modles: there is no such setting; did you mean 'models'?"),
        ({"api_key": KEY}, "api_key must name a secret, {secret: NAME}; the key itself does not belong in a file"),
        ({"models": "small"}, "Expected `array | null`, got `str` - at `$.models`"),
        ({"price": {"prompt": 1}}, "Object missing required field `completion` - at `$.price`"),
        ({"price": {"prompt": float("nan"), "completion": 1}}, "Expected `float` >= 0.0 - at `$.price.prompt`"),
        ({"price": {"prompt": True, "completion": 1}}, "Expected `float`, got `bool` - at `$.price.prompt`"),
    ],
)
def test_mistakes_in_the_settings_of_a_provider(config: dict[str, Any], message: str) -> None:
    document = {"base_url": "https://a.example/v1", **config}
    for provider in (document, MappingProxyType(document)):
        mistakes = [*wrong_settings({"providers": {"here": provider, "there": {"base_url": "https://b.example"}}})]
        assert mistakes == [("providers.here", message)]


def test_models_that_the_rules_allow(govern: Make, provider: Provider, home: Governed) -> None:
    section = {"allowed_providers": ["he*"], "allowed_models": ["small-*", "pl*n"]}
    allowing = govern(governance=rules(provider, tools={"inference": section}, config={"models": ["plain", "cut"]}))
    assert ask(allowing, "plain")["text"] == SAID
    project = allowing.work / ".albert" / "governance.yaml"
    project.write_text("tools: {inference: {allowed_models: [cut]}}")
    assert fails(allowing, "plain").rule == "project.tools.inference.allowed_models"


def test_a_key_without_a_value(govern: Make, provider: Provider) -> None:
    error = fails(govern(governance=rules(provider)), "plain")
    assert error.code == "not_found"
    assert "ALBERT_SECRET_TEST_KEY" in (error.hint or "")
    assert provider.base_url


@pytest.mark.parametrize(
    ("budget", "unit"), [(Budget(model_tokens=30), "model_tokens"), (Budget(model_cost=0.1), "model_cost")]
)
def test_a_budget_of_tokens_and_of_cost(home: Governed, provider: Provider, budget: Budget, unit: str) -> None:
    home.session = home.service.within(lambda s: s.open_session("agent", budget=budget))[1]
    first = ask(home, "plain")
    # About four tokens for the prompt. The call asks for the rest of the budget.
    assert first["max_tokens"] == provider.requests[0]["max_tokens"] == (26 if unit == "model_tokens" else 9)
    ask(home, "plain")
    error = fails(home, "plain", prompt="Say hello. " * 10)
    assert (error.code, error.rule) == ("budget_exceeded", f"lease.budget.{unit}")
    assert len(provider.requests) == 2


def test_a_model_without_price_cannot_be_charged_to_a_budget(govern: Make, provider: Provider, home: Governed) -> None:
    prices = {"config": {"price": {"prompt": 0, "completion": 0}, "prices": {"plain": {"prompt": 1, "completion": 1}}}}
    free = govern(governance=rules(provider, **prices))
    free.session = free.service.within(lambda s: s.open_session("agent", budget=Budget(model_cost=1)))[1]
    assert ask(free, "free")["cost"] == 0
    assert ask(free, "plain")["cost"] == pytest.approx(10 / 1_000_000)
    unpriced = rules(provider)
    del unpriced["primitives"]["inference"]["providers"]["here"]["price"]
    home = govern(governance=unpriced)
    assert ask(home, "plain")["cost"] is None
    home.session = home.service.within(lambda s: s.open_session("agent", budget=Budget(model_cost=1)))[1]
    error = fails(home, "plain")
    assert (error.code, error.rule) == ("budget_exceeded", "lease.budget.model_cost")


def test_concurrent_calls_never_overdraw_a_budget(home: Governed, provider: Provider) -> None:
    from concurrent.futures import ThreadPoolExecutor

    home.session = home.service.within(lambda s: s.open_session("agent", budget=Budget(model_tokens=16)))[1]
    arguments = {"provider": "here", "model": "plain", "prompt": "Say hello."}
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: home.service.invoke("inference", arguments, session=home.session), range(4)))
    assert sorted(r.ok for r in ends) == [False, False, True, True]
    assert {r.error.code for r in ends if r.error} == {"budget_exceeded"}
    # Each call asks for the rest of the budget at its turn: 16 - 4, then 6 - 4.
    assert sorted(r["max_tokens"] for r in provider.requests) == [2, 12]


def test_it_is_called_from_a_program_and_from_the_command_line(
    home: Governed, provider: Provider, tmp_path: Any
) -> None:
    body = 'return tools.inference(provider="here", model="plain", prompt=text)["text"].upper()'
    assert home.composite(body, "text: str", text="Say hello.") == SAID.upper()
    folder = tmp_path / "cli"
    folder.mkdir()
    albert = Albert(folder)
    config = albert.home / "config"
    config.mkdir(parents=True)
    (config / "governance.yaml").write_text(json.dumps(rules(provider)))
    call = ("run", "--json", "inference", "provider=here", "model=plain", "prompt=Say hello.")
    env = {"ALBERT_SECRET_TEST_KEY": KEY}
    document = albert(*call, env=env).document()
    assert document["output"]["text"] == SAID
    denied = albert("run", "inference", "provider=there", "model=plain", "prompt=x", env=env)
    assert denied.code == 3
