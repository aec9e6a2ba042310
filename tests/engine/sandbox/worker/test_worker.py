"""A worker and its socket: every message that the worker sends, and its reaction to every answer.

The worker runs in a child process without confinement, so that the test can observe it. Everything else is the real code.
"""

from __future__ import annotations

# ruff: noqa: E501
import marshal
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from albert_tools.engine.model import vocabulary
from albert_tools.engine.sandbox.worker import zygote, zygote_report
from albert_tools.engine.sandbox.worker.codec import Unpacker, pack
from albert_tools.engine.sandbox.worker.spawn import PROGRAMS
from albert_tools.engine.sandbox.worker.worker import Worker
from albert_tools.engine.sandbox.worker.world import facades, preload
from tests.helpers.children import Child, Report, coverage_here, measured

BYTES = 1 << 20


class Peer:
    """The service's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._unpacker = Unpacker(64 * BYTES)
        self._inbox: list[list[Any]] = []
        self._ready = False
        sock.settimeout(20)

    def run(self, lowered: str, arguments: dict[str, Any] | None = None, **limits: int) -> None:
        if not self._ready:
            assert self.hear() == ["ready"]
            self._ready = True
        code = marshal.dumps(compile(lowered, "<tool>", "exec", dont_inherit=True))
        settings = {
            "entry": "t",
            "lowered": "",
            "code": code,
            "recursion": 200,
            "log_bytes": 1000,
            "result_bytes": BYTES,
            **limits,
        }
        self.socket.sendall(pack(["run", settings], arguments or {}, BYTES))

    def hear(self) -> list[Any]:
        while not self._inbox:
            data = self.socket.recv(65536)
            assert data, "the worker has gone"
            self._inbox.extend(self._unpacker.feed(data))
        return self._inbox.pop(0)

    def say(self, *message: Any) -> None:
        self.socket.sendall(pack(list(message)))


def be_a_worker(_: Report, sock: socket.socket) -> None:
    modules = sorted(vocabulary.MODULES)
    preload(modules)
    worker = Worker(facades(modules))
    worker.rehearse()
    worker.connect(sock)
    worker.serve()


@pytest.fixture
def peer() -> Iterator[Callable[[], Peer]]:
    made: list[tuple[Peer, Child]] = []

    def make() -> Peer:
        ours, theirs = socket.socketpair()
        with theirs:
            made.append((Peer(ours), Child(measured, coverage_here(), be_a_worker, theirs)))
        return made[-1][0]

    yield make
    for each, child in made:
        each.socket.close()
        child.wait()


Make = Callable[[], Peer]


def test_result_error_and_prints(peer: Make) -> None:
    a = peer()
    a.run(
        "import json\ndef t(n):\n    print('got', n, '\\ud800', sep='-')\n    print(end='')\n    return json.loads('[1]') + [n, (2,)]\n",
        {"n": 5},
    )
    assert a.hear() == ["print", "got-5-\\ud800\n"]
    assert a.hear() == ["result", [1, 5, [2]]]
    b = peer()
    b.run("def _f(n):\n    return 1 // n\ndef t(n):\n    return _f(n)\n", {"n": 0})
    assert b.hear() == [
        "error",
        {
            "code": "exception",
            "type": "ZeroDivisionError",
            "message": "integer division or modulo by zero",
            "tool": None,
            "retryable": False,
            "lines": [4, 2],
            "call": None,
        },
    ]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("raise ToolError('no', code='mine', retryable=True)", "mine", "no"),
        ("raise ToolError(3, code=4)", "tool_error", "3"),
        ("raise ToolError('no', code='\\ud800')", "\\ud800", "no"),
        ("raise ToolError('no', code='x' * 5000)", "x" * 1999 + "…", "no"),
        ("return {1}", "not_json", "a set"),
        ("return 'x' * 2000000", "result_limit", "larger than"),
        ("raise ValueError('x' * 5000)", "exception", "…"),
        ("raise ValueError('\\ud800')", "exception", "\\ud800"),
    ],
)
def test_endings(peer: Make, body: str, code: str, said: str) -> None:
    a = peer()
    a.run(f"def t():\n    {body}\n")
    kind, error = a.hear()
    assert (kind, error["code"]) == ("error", code)
    assert said in error["message"]
    assert len(error["message"]) <= 2000


@pytest.mark.parametrize(
    ("lowered", "code"),
    [
        ("def _f():\n    return _f()\ndef t():\n    return _f()\n", "recursion_limit"),
        (
            "def _f():\n    return _f()\ndef t():\n    try:\n        return _f()\n    except __Fatal:\n        __fatal()\n",
            "recursion_limit",
        ),
        ("def t():\n    for i in range(1000):\n        print('xxxxxxxx')\n", "log_limit"),
        ("def t():\n    a = [1]\n    for i in range(100000):\n        a = [a]\n    return str(a)\n", "recursion_limit"),
        ("def t():\n    raise __Fatal[0]\n", "memory_limit"),
    ],
)
def test_a_limit_is_reported_and_ends_the_program(peer: Make, lowered: str, code: str) -> None:
    a = peer()
    a.run(lowered)
    message = a.hear()
    while message[0] == "print":
        message = a.hear()
    assert message[:2] == ["limit", code]
    assert all(isinstance(n, int) for n in message[2])
    a.run("def t():\n    return 1\n")
    a.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        a.hear()


def test_calls_and_failures(peer: Make) -> None:
    a = peer()
    a.run(
        "def t():\n    a = __call('read', {'p': 1})\n    try:\n        __call('read', {'p': {2}})\n    except ToolError as e:\n"
        "        b = [e.code, e.tool]\n    try:\n        __call('write', {})\n    except ToolError as e:\n"
        "        return [a, b, e.code, e.message, e.tool, e.retryable]\n"
    )
    assert a.hear() == ["call", 1, "read", "0", False, {"p": 1}]
    a.say("value", 99, "stale")
    a.say("value", 1, "one")
    assert a.hear() == ["call", 3, "write", "2", False, {}]
    a.say("failure", 3, {"code": "timeout", "message": "late", "tool": "write", "retryable": True})
    assert a.hear() == ["result", ["one", ["not_json", "read"], "timeout", "late", "write", True]]


def test_large_strings_are_sent_separately_from_the_structure(peer: Make) -> None:
    a = peer()
    a.run("def t(s):\n    return [s + 'é', __call('f', {'s': s})]\n", {"s": "x" * 100_000})
    assert a.hear()[5] == {"s": "x" * 100_000}
    a.socket.sendall(pack(["value", 1], "y" * 300_000, BYTES))
    assert a.hear() == ["result", ["x" * 100_000 + "é", "y" * 300_000]]


GATHER = "def t(n):\n    return __gather(True, lambda i: [i, __call('r', {'i': i})], ((i,) for i in range(n)))\n"


def test_reads_overlap_and_their_results_are_in_order(peer: Make) -> None:
    a = peer()
    a.run(GATHER, {"n": 70})
    numbers = {}
    for i in range(64):
        kind, number, _, key, together, given = a.hear()
        assert (kind, key, together, given) == ("call", f"0.{i}.0", True, {"i": i})
        numbers[i] = number
    for i in reversed(range(64)):
        a.say("value", numbers[i], i * 10)
    for i in range(64, 70):
        _, number, _, key, _, _ = a.hear()
        assert key == f"0.{i}.0"
        a.say("value", number, i * 10)
    assert a.hear() == ["result", [[i, i * 10] for i in range(70)]]


def test_the_first_error_and_the_prints_are_in_the_order_of_the_program(peer: Make) -> None:
    a = peer()
    body = (
        "def _b(i):\n    print('start', i)\n    try:\n        __call('r', {'i': i})\n        print('end', i)\n"
        "    finally:\n        print('finally', i)\n"
        "def t():\n    try:\n        __gather(True, lambda i: _b(i), ((i,) for i in range(4)))\n"
        "    except ToolError as e:\n        return e.message\n"
    )
    a.run(body)
    numbers = []
    heard = []
    while len(numbers) < 4:
        message = a.hear()
        (numbers if message[0] == "call" else heard).append(message[1])
    failed = {"code": "x", "tool": "r", "retryable": False}
    a.say("failure", numbers[2], {**failed, "message": "two"})
    a.say("value", numbers[3], 1)
    a.say("value", numbers[0], 1)
    a.say("failure", numbers[1], {**failed, "message": "one"})
    message = a.hear()
    while message[0] == "print":
        heard.append(message[1])
        message = a.hear()
    assert message == ["result", "one"]
    assert "".join(heard) == "start 0\nend 0\nfinally 0\nstart 1\nfinally 1\n"


def test_writes_wait_for_each_other(peer: Make) -> None:
    a = peer()
    a.run(
        "def t():\n    return __parallel(False, lambda: __call('w', {'i': 1}), lambda: 2, lambda: __call('w', {'i': 3}))\n"
    )
    assert a.hear() == ["call", 1, "w", "0.0.0", False, {"i": 1}]
    a.say("value", 1, "a")
    assert a.hear() == ["call", 2, "w", "0.2.0", False, {"i": 3}]
    a.say("value", 2, "b")
    assert a.hear() == ["result", ["a", 2, "b"]]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("((next(iter([])),) for i in [1])", "generator raised StopIteration"),
        ("((1 // i,) for i in [1, 0])", "integer division or modulo by zero"),
    ],
)
def test_errors_of_the_header_and_of_bodies(peer: Make, items: str, said: str) -> None:
    for reads in (True, False):
        a = peer()
        a.run(f"def t():\n    return __gather({reads}, lambda x: x, {items})\n")
        kind, error = a.hear()
        assert (kind, error["message"]) == ("error", said)
        b = peer()
        b.run(f"def t():\n    return __gather({reads}, lambda x: next(iter([])), ((i,) for i in [1]))\n")
        assert b.hear()[1]["message"] == "generator raised StopIteration"


def test_nested_parallel_and_limits_in_bodies(peer: Make) -> None:
    a = peer()
    a.run(
        "def t():\n    return __gather(True, lambda i: list(__parallel(True, lambda: i, lambda: __call('r', {}))), ((i,) for i in [1]))\n"
    )
    assert a.hear() == ["call", 1, "r", "0.0.0", True, {}]
    a.say("value", 1, 7)
    assert a.hear() == ["result", [[1, 7]]]
    b = peer()
    b.run("def _f():\n    return _f()\ndef t():\n    return __gather(True, lambda i: _f(), ((i,) for i in [1]))\n")
    assert b.hear()[:2] == ["limit", "recursion_limit"]


def test_only_facades_can_be_imported(peer: Make) -> None:
    a = peer()
    a.run(
        "import urllib.parse\nfrom urllib import parse\nimport urllib.parse as p\ndef t():\n    return [p.quote(' '), parse is p]\n"
    )
    assert a.hear() == ["result", ["%20", True]]
    for text in ("import os", "from json import codecs", "import _strptime\n_strptime.time"):
        b = peer()
        b.run(f"{text}\ndef t():\n    return 1\n")
        assert b.hear()[0] == "error"


def be_a_zygote(_: Report, sock: socket.socket) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    zygote.main(sock.detach(), PROGRAMS.module)


def test_a_zygote_forks_reports_and_ends_with_its_service() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        child = Child(measured, coverage_here(), be_a_zygote, theirs)
    ours.settimeout(20)
    ours.sendall(b"5,100000000,rlimits,json,")
    ours.sendall(b"re\n")
    size = zygote_report.REPORT.size
    what, _, _, length = zygote_report.REPORT.unpack(ours.recv(size))
    assert (what, ours.recv(length)) == (zygote_report.READY, b"rlimits")
    ours.send(bytes([zygote_report.SPARE]))
    data, handles, _, _ = socket.recv_fds(ours, size, 2)
    what, worker, count, _ = zygote_report.REPORT.unpack(data)
    assert (what, count, len(handles)) == (zygote_report.BORN, 2, 2)
    with socket.socket(fileno=handles[0]) as sock:
        peer = Peer(sock)
        peer.run("import re\ndef t():\n    return re.sub('a', 'b', 'aa')\n")
        assert peer.hear() == ["result", "bb"]
    os.close(handles[1])
    what, ended, status, _ = zygote_report.REPORT.unpack(ours.recv(size))
    assert (what, ended, status) == (zygote_report.ENDED, worker, 0)
    ours.send(bytes([zygote_report.SPARE]))
    _, handles, _, _ = socket.recv_fds(ours, size, 2)
    ours.close()
    assert child.wait() == 0
    for handle in handles:
        os.close(handle)


def test_a_zygote_that_cannot_be_set_up_reports_why() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        child = Child(measured, coverage_here(), be_a_zygote, theirs)
    ours.sendall(b"5,100000000,,no_such_module\n")
    ours.settimeout(20)
    what, _, _, length = zygote_report.REPORT.unpack(ours.recv(zygote_report.REPORT.size))
    assert what == zygote_report.FAILED
    assert b"no_such_module" in ours.recv(length)
    assert child.wait() == 1
