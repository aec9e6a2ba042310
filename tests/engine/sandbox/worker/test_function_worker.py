"""A worker that calls one function once: every message that it sends. It runs in a child process without confinement."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.function_worker import Ask, FunctionWorker
from tests.helpers.children import Child, Report, coverage_here, measured

MAX = 1 << 16


def work(arguments: Any, ask: Ask) -> Any:
    match arguments:
        case {"ask": questions}:
            return [ask(question) for question in questions]
        case {"fail": code}:
            raise Failure(code, "it failed", hint="do something else", retryable=True)
        case {"raise": text}:
            raise ValueError(text)
        case "memory":
            raise MemoryError
        case "deep":
            return work(arguments, ask)
        case {"large": size}:
            return "x" * size
    return arguments


def be_a_function_worker(_: Report, sock: socket.socket) -> None:
    worker = FunctionWorker(work, [1, {"ask": [2]}], 1000, MAX)
    assert [worker.warm_up(), worker.warm_up(), worker.warm_up()] == [True, False, False]
    worker.rehearse()
    worker.connect(sock)
    worker.serve()


Talk = Callable[..., list[list[Any]]]


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Send arguments and answers to a new worker. Returns its messages until the last one."""
    made: list[tuple[socket.socket, Child]] = []

    def send(arguments: Any, *answers: Any) -> list[list[Any]]:
        ours, theirs = socket.socketpair()
        with theirs:
            made.append((ours, Child(measured, coverage_here(), be_a_function_worker, theirs)))
        ours.settimeout(20)
        ours.sendall(pack(["call"], json.dumps(arguments), MAX))
        unpacker, heard = Unpacker(MAX), list[list[Any]]()
        left = list(answers)
        while not heard or heard[-1][0] in ("ready", "question"):
            for message in unpacker.feed(ours.recv(65_536)):
                heard.append(message)
                if message[0] == "question":
                    ours.sendall(pack(["answer"], json.dumps(left.pop(0)), MAX))
        assert heard.pop(0) == ["ready"]
        return heard

    yield send
    for ours, child in made:
        ours.close()
        child.wait()


def test_results_and_questions(talk: Talk) -> None:
    assert talk([1, 10**40, None, "é"]) == [["result", f'[1,{10**40},null,"\\u00e9"]']]
    assert talk({"ask": ["a", {"b": 1}]}, None, [1.5]) == [
        ["question", '"a"'],
        ["question", '{"b": 1}'],
        ["result", "[null,[1.5]]"],
    ]


def test_failures(talk: Talk) -> None:
    [[kind, fields]] = talk({"fail": "not_found"})
    assert (kind, fields["code"], fields["hint"], fields["retryable"]) == (
        "failure",
        "not_found",
        "do something else",
        True,
    )
    assert talk({"raise": "no"}) == [["exception", {"type": "ValueError", "message": "no"}]]
    # With its quotation marks, the first text has the most bytes.
    assert talk({"large": MAX - 2}) == [["result", f'"{"x" * (MAX - 2)}"']]
    [[kind, fields]] = talk({"large": MAX - 1})
    assert (kind, fields["code"]) == ("failure", "result_limit")
    assert talk("memory") == talk("deep") == [["memory"]]
