"""Redaction: the recorded form of a value contains no text that looks like a secret, is always JSON, and is small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blake3 import blake3

from albert_tools import primitive
from albert_tools.engine.model.redaction import MAX_ALL, REDACTED, recorded, redacted, redacted_text

KEY = "sk-live-abcdefghij1234567890"


@pytest.mark.parametrize(
    "value",
    [
        KEY,
        "PGPASSWORD=hunter22 psql",
        "mysql --password hunter22",
        "https://example.org/?api_key=hunter22&x=1",
        '{"token": "hunter22"}',
        "curl -H 'Authorization: Basic aHVudGVyMjI6eA=='",
        "postgres://ada:hunter22@db/x",
        "redis://:hunter22@db/0",
    ],
)
def test_a_secret_in_a_text(value: str) -> None:
    assert redacted({"a": value}) == {"a": REDACTED}
    told = redacted_text(f"there is nothing at {value!r}, is there?")
    assert "hunter22" not in told
    assert "aHVudGVyMjI6eA" not in told
    assert KEY not in told
    assert told.startswith("there is nothing at ")
    long = json.dumps(redacted({"a": value + " " * 300}))
    assert "hunter22" not in long
    assert KEY not in long


@pytest.mark.parametrize(
    "value", ["a password is needed", "the token: $TOKEN", "cookies.txt", "https://example.org/a@b"]
)
def test_texts_about_secrets_are_not_changed(value: str) -> None:
    assert redacted({"a": value}) == {"a": value}
    assert redacted_text(value) == value


def test_a_secret_in_a_key() -> None:
    assert KEY not in json.dumps(redacted({KEY: 1, "a": {KEY * 100: 2}}))


def test_a_secret_at_the_cut_is_redacted() -> None:
    assert "abcdefghij" not in redacted_text("x" * 480 + " " + KEY)


@pytest.mark.parametrize("value", [10**30, -(2**70), object(), b"x", {1: "\ud800"}, {"\ud800": {2, 3}}, float("nan")])
def test_any_value_becomes_json(value: Any) -> None:
    json.dumps(redacted({"a": value, "b": [value]})).encode()
    json.dumps(redacted({"a": value}), ensure_ascii=False).encode()


def test_large_values_are_cut() -> None:
    deep: Any = "x" * 190
    for _ in range(5):
        deep = [deep] * 50
    assert len(json.dumps(redacted({"a": deep, "k" * 100_000: [10**9] * 100}))) < 2 * MAX_ALL


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece", ["token", "secret", "authorization", "-ey", "://a:", "token ", "-----BEGIN ", "bearer ", "token='", "a b "]
)
def test_no_text_takes_long_to_search(piece: str) -> None:
    text = (piece * 10_000)[:10_000]
    assert len(json.dumps(redacted([[text] * 50] * 10))) < 2 * MAX_ALL
    redacted_text(text)


def test_of_more_texts_than_are_searched_only_sizes_and_hashes_are_recorded() -> None:
    told = redacted([*["a b " * 2_500] * 40, "a b"])
    assert told[0]["$text"].startswith("a b")
    assert told[-2] == told[0] | {"$text": REDACTED}
    assert told[-1] == REDACTED


@pytest.mark.parametrize("end", ["\n-----END RSA PRIVATE KEY-----\nbehind it", ""])
def test_a_private_key_is_removed_with_its_begin_and_end_lines(end: str) -> None:
    told = redacted_text(f"it holds -----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vASNFZ4mr{end}")
    assert told == f"it holds {REDACTED}" + ("\nbehind it" if end else "")


def test_a_number_of_tokens_is_no_secret() -> None:
    assert redacted({"max_tokens": 4096, "prompt_tokens": 7.5}) == {"max_tokens": 4096, "prompt_tokens": 7.5}
    assert redacted({"max_tokens": "hunter22", "token": 1234, "tokens": [1234]}) == {
        "max_tokens": REDACTED,
        "token": REDACTED,
        "tokens": REDACTED,
    }


def test_arguments_recorded_by_hash() -> None:
    @primitive(schemas={"text": {"x-recorded": "hash"}, "more": {"x-recorded": "hash"}})
    def tell(text: str, more: str | None = None, name: str = "") -> None:
        """Tell something."""

    by_hash = tell.definition.by_hash
    assert by_hash == ("text", "more")
    told = recorded({"text": "äh", "more": None, "name": "ada"}, by_hash)
    named = {"$hash": f"b3:{blake3('äh'.encode()).hexdigest()}", "size_bytes": 3}
    assert told == {"text": named, "more": None, "name": "ada"}
    # A call that is refused for its arguments can contain anything there.
    assert recorded({"text": ["secret"]}, by_hash) == {"text": REDACTED}
    assert recorded({"text": "\ud800"}, by_hash)["text"]["size_bytes"] == 3
    assert recorded({"text": "x"}, ()) == {"text": "x"}
