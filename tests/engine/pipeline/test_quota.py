"""What a session makes the service store: one quota for all of it, and one rule about who may read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from albert_tools import Budget, Failure, primitive
from albert_tools.engine.call import entries
from albert_tools.store.record.verify import verify
from tests.helpers.governed import Governed, governing

MiB = 1024 * 1024
QUOTA = "records.session_mb"
ALLOWED = ["publish_artifact", "put_content", "define_tool", "run_source", "keep"]
STEPS = "for i in range(n):\n        tools.much(size=500, n=i)\n    return n"


@primitive(effects=["read"])
def much(size: int, n: int = 0) -> str:
    """Return a text of a size."""
    return f"{n:08}" * (size // 8)


@primitive(effects=["write"])
def keep(size: int) -> str:
    """Change something, and return a text of a size."""
    return "x" * size


@primitive(effects=["write"])
def keep_note(text: str) -> str:
    """Ask a person first."""
    return ""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Governed]]:
    with governing(tmp_path) as make:

        def made(mb: float = 1, **more: Any) -> Governed:
            asks = {"keep_note": {"requires_approval_in_modes": ["NORMAL"]}}
            rules = {"records": {"session_mb": mb}, "allow": ALLOWED, "tools": asks}
            return make(**{"primitives": [much, keep, keep_note], "governance": rules, "output_bytes": 10_000, **more})

        yield made


def opened(home: Governed, **options: Any) -> str:
    """The token of a new session."""
    return str(home.service.within(lambda s: s.open_session("agent", **options))[1])


def used(home: Governed, token: str) -> float:
    """The bytes that are charged to a session."""
    return float(home.service.within(lambda s: s.session_of(token).used["bytes_stored"]))


def reopen(home: Governed) -> None:
    """Continue in a new service, as after a restart."""
    home.service.close()
    home.service = type(home.service).open(home=home.home, workspace=home.work, **home.options)


def stored(home: Governed) -> int:
    """The bytes on the disk of all that the service has stored. The service is opened again, so no log of the database is left."""
    reopen(home)
    return sum(512 * f.stat().st_blocks for f in home.home.rglob("*") if f.is_file())


def define(home: Governed, body: str, name: str = "t") -> None:
    home.service.define(f'def {name}(n: int) -> Any:\n    """Do it."""\n    {body}\n')


def words(n: int) -> str:
    """Words of five letters, others for each number."""
    return " ".join(f"{i * 7919 % 16**5:05x}" for i in range(n * 4000, n * 4000 + 4000))


def source(n: int, text: str = "x" * 20_000) -> str:
    lines = "\n".join(f"    a{i} = '{n}{text[i * 100 : i * 100 + 100]}'" for i in range(200))
    return f'def d{n}() -> str:\n    """Do it."""\n{lines}\n    return a0\n'


#: What a session can do again and again, always with something new.
ATTACKS: dict[str, Callable[[Governed, int], tuple[str, dict[str, Any]]]] = {
    "results": lambda _, n: ("much", {"size": 60_000, "n": n}),
    "results of programs": lambda _, n: ("t", {"n": 40_000 + 8 * n}),
    "steps": lambda _, n: ("small_steps", {"n": 200}),
    "contents": lambda _, n: ("read_bytes", {"path": f"big{n % 40}", "limit": 50_000 + n}),
    "artifacts": lambda _, n: ("publish_artifact", {"id": f"{n}", "category": "c", "content": f"{n:08}" * 5_000}),
    "metadata": lambda _, n: (
        "publish_artifact",
        {"id": f"{n}", "category": "c", "content": "x", "metadata": [f"m{i}={'x' * 4000}" for i in range(20)]},
    ),
    "metadata that the file escapes": lambda _, n: (
        "publish_artifact",
        {"id": f"{n}", "category": "c", "content": "x", "metadata": [f"m{i}=" + "\x01" * 4000 for i in range(20)]},
    ),
    "small artifacts": lambda _, n: ("publish_artifact", {"id": f"{n}", "category": "c", "content": f"{n}"}),
    "definitions": lambda _, n: ("define_tool", {"source": source(n)}),
    # Each is in the search index, too.
    "definitions of many words": lambda _, n: ("define_tool", {"source": source(n, words(n))}),
    "long descriptions": lambda _, n: (
        "define_tool",
        {"source": f'def d{n}() -> int:\n    """{words(n)}"""\n    return {n}\n'},
    ),
    "small definitions": lambda _, n: (
        "define_tool",
        {"source": f'def d{n}() -> int:\n    """Do it."""\n    return {n}\n'},
    ),
    "sources": lambda _, n: ("run_source", {"source": source(n)}),
    "arguments": lambda _, n: ("keep_text", {"text": f"{n:08}" * 12_500}),
    "questions": lambda _, n: ("keep_note", {"text": f"{n:08}" * 12_500}),
    "unknown tools": lambda _, n: ("no_such_tool", {f"{n}": "y" * 100, **{f"x{i}": "y" * 150 for i in range(20)}}),
    "wrong arguments": lambda _, n: ("small_steps", {"n": "1", **{f"x{i}": "y" * 150 for i in range(20)}}),
}


@pytest.mark.parametrize(
    "attack", [pytest.param(a, marks=[pytest.mark.slow] if a in ("sources", "steps") else []) for a in ATTACKS]
)
def test_all_that_a_session_stores_has_one_quota(make: Any, attack: str) -> None:
    home = make()
    define(home, "return tools.much(size=n)")
    define(home, STEPS, "small_steps")
    home.service.define('def keep_text(text: str) -> int:\n    """Count."""\n    return len(text)\n')
    for n in range(40):
        (home.work / f"big{n}").write_bytes(bytes([n]) * 60_000)
    token = opened(home)
    tokens = [token, opened(home, within=token)]
    before = stored(home)
    refusal = None
    for n in range(3000):
        name, arguments = ATTACKS[attack](home, n)
        error = home.service.invoke(name, arguments, session=tokens[n % 2]).error
        if error is not None and error.rule == QUOTA:
            refusal = error
            break
    assert refusal is not None
    assert refusal.code == "budget_exceeded"
    assert "records: {session_mb: …}" in str(refusal.hint)
    # The child's use is its parent's, too.
    assert 0.9 * MiB < used(home, token) < 1.2 * MiB
    assert used(home, token) > used(home, tokens[1])
    # Others have their own quota, and the owner has none.
    assert home.service.invoke("much", {"size": 8}, session=opened(home)).ok
    assert home.service.invoke("much", {"size": 2 * MiB}).ok
    assert stored(home) - before < 2 * MiB + 2 * MiB
    assert verify(home.home / "state" / "record").problems == ()


def test_a_used_up_quota_refuses_everything_and_stores_little(make: Any) -> None:
    home = make(0.02)
    token = opened(home)
    child = opened(home, within=token)
    for n in range(100):
        home.service.invoke("no_such_tool", {"n": n, "text": "x" * 190}, session=token)
    entries = home.service.within(lambda s: len([*s.ledger.entries()]))
    for asked in range(50):
        for name in ("much", "no_such_tool", "read_result"):
            for each in (token, child):
                error = home.service.invoke(name, {"size": asked}, session=each).error
                assert (error.code, error.rule) == ("budget_exceeded", QUOTA)
        with pytest.raises(Failure, match="it may do nothing more"):
            opened(home, within=token)
    # One refusal a minute is recorded for each session.
    assert home.service.within(lambda s: len([*s.ledger.entries()])) - entries <= 4
    reopen(home)
    assert home.service.invoke("much", {"size": 8}, session=token).error.rule == QUOTA
    # The owner's rule is read at each request.
    home.options["governance"] = {"records": {"session_mb": 1}}
    reopen(home)
    assert home.service.invoke("much", {"size": 8}, session=token).ok


def test_requests_of_a_session_that_has_ended_store_little(make: Any) -> None:
    home = make()
    session, token = home.service.within(lambda s: s.open_session("agent"))
    home.service.within(lambda s: s.sessions.end(session.id))
    for n in range(20):
        assert home.service.invoke("much", {"size": n}, session=token).error.rule == "session.ended"
        assert home.service.invoke("much", {"size": n}, session=f"alb_{n:064}").error.rule == "session.unknown"
    rules = home.service.within(lambda s: [entry.data["rule_id"] for entry in s.ledger.entries({"denied"})])
    assert rules == ["session.ended", "session.unknown"]


def test_a_program_that_only_reads_stops_at_the_quota(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "LATEST", 3600.0)
    home = make()
    define(home, "for i in range(n):\n        tools.much(size=60_000, n=i)\n    return n")
    token = opened(home)
    assert home.service.invoke("t", {"n": 200}, session=token).error.rule == QUOTA
    assert used(home, token) < 1.2 * MiB


def test_results_are_charged_whatever_the_budget(make: Any) -> None:
    home = make(256, output_bytes=100_000)
    token = opened(home, budget=Budget(bytes_written=1))
    before = stored(home)
    for n in range(5):
        assert home.service.invoke("much", {"size": MiB, "n": n}, session=token).truncated
    grown, charged = stored(home) - before, used(home, token)
    assert 5 * MiB < charged < 5.1 * MiB
    assert grown < charged + MiB
    # The same value again costs only its entries.
    assert home.service.invoke("much", {"size": MiB, "n": 0}, session=token).truncated
    assert used(home, token) - charged < 10_000


@pytest.mark.parametrize(
    "body", ["return tools.much(size=n)", "return [tools.much(size=n // 2), tools.much(size=n // 2)]"]
)
def test_the_result_of_a_program_is_stored_once(make: Any, body: str) -> None:
    home = make(256, output_bytes=MiB)
    define(home, body)
    token = opened(home)
    before = stored(home)
    requests = [{"arguments": {"n": 3 * MiB + 64 * n}, "session": token, "dedupe_key": f"k{n}"} for n in range(3)]
    results = [home.service.invoke("t", **request) for request in requests]
    texts = 1 if "[" not in body else 1.5  # The two halves are one text; the list is another value.
    grown, charged = stored(home) - before, used(home, token)
    for result, request in zip(results, requests, strict=True):
        handle = result.value()["handle"]
        again = home.service.invoke("t", **request)
        assert again.repeated
        # A repeated request gets all of it.
        assert len("".join(again.value())) == request["arguments"]["n"]
        run = home.service.within(lambda s, run=result.run_id: s.runs.show(run))
        assert (run.state, run.steps[0]["text_ref"][:3]) == ("done", "b3:")
        if texts == 1:
            assert run.steps[0]["text_ref"] == handle
    assert 9 * MiB * texts < charged < 9.1 * MiB * texts
    assert grown < charged + MiB
    assert verify(home.home / "state" / "record").problems == ()


#: What is stored in many rows and indexes, besides an entry of the ledger.
ROWS: dict[str, Callable[[Governed, str, int], object]] = {
    "sessions": lambda home, token, n: [opened(home, within=token) for _ in range(40)],
    "descriptions": lambda home, token, n: home.service.invoke(*ATTACKS["long descriptions"](home, n), session=token),
    "steps": lambda home, token, n: home.service.invoke("small_steps", {"n": 200}, session=token),
}


@pytest.mark.parametrize("kind", ROWS)
def test_what_grows_on_the_disk_is_charged(make: Any, kind: str) -> None:
    home = make(64)
    define(home, STEPS, "small_steps")
    token = opened(home)
    before = stored(home)
    for n in range(20):
        ROWS[kind](home, token, n)
    charged = used(home, token)
    assert charged > 400_000
    assert 0.5 * charged < stored(home) - before < 1.25 * charged


def test_several_processes_share_the_quota(make: Any) -> None:
    home = make(1)
    token = opened(home)
    other = type(home.service).open(home=home.home, workspace=home.work, **home.options)
    try:

        def store(n: int) -> bool:
            service = (home.service, other)[n % 2]
            return service.invoke("much", {"size": 100_000, "n": n}, session=token).ok

        with ThreadPoolExecutor(8) as pool:
            done = sum(pool.map(store, range(40)))
    finally:
        other.close()
    assert 5 < done < 11
    assert used(home, token) < 1 * MiB + 100_000


def test_a_result_that_may_not_be_stored_leaves_a_run_that_says_so(make: Any) -> None:
    home = make(1)
    define(home, "tools.keep(size=8)\n    return 'x' * n")
    token = opened(home)
    assert home.service.invoke("t", {"n": 20_000}, session=token).ok
    refused = home.service.invoke("t", {"n": 2_000_000}, session=token)
    assert refused.output is None
    assert refused.error.rule == QUOTA
    assert "t has ended, but its result is lost: the service has stored" in refused.error.message
    run = home.service.within(lambda s: s.runs.show(refused.run_id))
    assert (run.state, run.error["code"]) == ("failed", "budget_exceeded")
    assert [step["tool"] for step in run.steps] == ["keep"]
    # There is room for more than this.
    assert home.service.invoke("t", {"n": 8}, session=token).ok
    # A primitive that has changed something says so, too.
    refused = home.service.invoke("keep", {"size": 2_000_000}, session=token)
    assert "keep has ended, but its result is lost" in refused.error.message
    assert home.service.invoke("keep", {"size": 2_000_000}).ok
    (entry,) = [e for e in home.service.within(lambda s: [*s.ledger.entries(["result"])]) if e.data.get("code")][1:]
    assert entry.data["code"] == "budget_exceeded"


def test_a_session_reads_only_what_it_has_stored_or_got(make: Any) -> None:
    home = make(100, output_bytes=1000)
    mine = opened(home)
    inner, others = opened(home, within=mine), opened(home)
    handle = home.service.invoke("much", {"size": 5000}, session=inner).output["handle"]
    of_the_owner = home.service.invoke("much", {"size": 5000, "n": 2}).output["handle"]

    def error(token: str, name: str, ref: str) -> Failure | None:
        given: dict[str, dict[str, Any]] = {
            "publish_artifact": {"id": f"{token[-5:]} {ref}", "category": "c", "handle": ref},
            "write_bytes": {"path": "new", "handle": ref},
            "read_result": {"handle": ref},
        }
        found: Failure | None = home.service.invoke(name, given[name], session=token).error
        return found

    missing = "b3:" + "0" * 64
    for name in ("publish_artifact", "write_bytes", "read_result"):
        assert [error(token, name, handle) for token in (inner, mine)] == [None, None], name
        for token, ref in ((others, handle), (mine, of_the_owner)):
            told, absent = error(token, name, ref), error(token, name, missing)
            assert told is not None
            assert absent is not None
            assert told.code == "not_found"
            assert (told.message.replace(ref, missing), told.hint) == (absent.message, absent.hint)
    # A program reads no more than its session.
    home.service.define(
        'def peek(ref: str) -> str:\n    """Read."""\n    return tools.read_result(handle=ref)["content"]\n'
    )
    assert home.service.invoke("peek", {"ref": handle}, session=others).error.code == "not_found"
    # What an artifact names is given with it.
    published = home.service.invoke("get_artifact", {"id": f"{mine[-5:]} {handle}"}, session=others).value()
    assert error(others, "read_result", published["content_hash"]) is None
    # Who has the content itself may read it.
    assert home.service.invoke("much", {"size": 5000, "n": 2}, session=mine).output["handle"] == of_the_owner
    assert error(mine, "read_result", of_the_owner) is None
    reopen(home)
    assert error(inner, "read_result", handle) is None
    assert error(opened(home), "read_result", handle) is not None
