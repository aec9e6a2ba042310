"""Tasks whose tool is a state machine. Each docstring is what the user has asked for."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from decimal import Decimal

import pytest

from albert_tools import Failure
from tests.agent_tasks.conftest import Desk


def test_check_orders(desk: Desk) -> None:
    """Replay events, which may be out of order, against a machine in a TOML file: illegal ones, final states, time in each."""
    machine = (
        'initial = "new"\nfinal = ["delivered", "cancelled", "lost"]\n[transitions.new]\npay = "paid"\ncancel = "cancelled"\n'
        '[transitions.paid]\nship = "shipped"\ncancel = "cancelled"\n[transitions.shipped]\narrive = "delivered"\nreturn = "paid"\n'
        '[transitions.ghost]\nfade = "cancelled"\n'
    )
    events = [
        ("a", "pay", "2024-01-01T10:00:00+00:00"),
        ("b", "pay", "2024-01-01T10:00:00+00:00"),
        ("a", "arrive", "2024-01-03T09:00:00+00:00"),
        ("a", "ship", "2024-01-02T10:00:00+00:00"),
        ("b", "arrive", "2024-01-02T11:00:00+00:00"),
        ("c", "cancel", "2024-01-02T00:00:00+00:00"),
        ("c", "pay", "2024-01-05T00:00:00+00:00"),
    ]
    lines = [json.dumps({"order": o, "event": e, "at": t}) for o, e, t in events]
    desk.write({"m.toml": machine, "e.jsonl": "\n".join([*lines[:3], "", *lines[3:]]) + "\n", "bad.jsonl": "{}\n{"})
    assert desk.call("check_orders", machine="m.toml", events="e.jsonl") == {
        "orders": {
            "a": {"state": "delivered", "open": False, "seconds": {"new": 0.0, "paid": 86400.0, "shipped": 82800.0}},
            "b": {"state": "paid", "open": True, "seconds": {"new": 0.0, "paid": 0.0}},
            "c": {"state": "cancelled", "open": False, "seconds": {"new": 0.0, "cancelled": 0.0}},
        },
        "illegal": [
            {"line": 6, "order": "b", "event": "arrive", "state": "paid", "allowed": ["cancel", "ship"]},
            {"line": 8, "order": "c", "event": "pay", "state": "cancelled", "allowed": []},
        ],
        "unreachable": ["ghost", "lost"],
    }
    with pytest.raises(Failure, match=r"bad\.jsonl:2"):
        desk.call("check_orders", machine="m.toml", events="bad.jsonl")


def test_run_turing_machine(desk: Desk) -> None:
    """Run the Turing machine in a file on a tape, with a limit of steps: palindromes, and a busy beaver."""
    palindrome = (
        "; is it a palindrome?\nstart: read\nhalt: yes no\nread _ _ N yes\nread a _ R seek-a\nread b _ R seek-b\n"
        "seek-a _ _ L last-a\nseek-a * * R seek-a\nseek-b _ _ L last-b\nseek-b * * R seek-b\n"
        "last-a a _ L back\nlast-a _ _ N yes\nlast-a b b N no\nlast-b b _ L back\nlast-b _ _ N yes\nlast-b a a N no\n"
        "back _ _ R read\nback * * L back\n"
    )
    beaver = "start: A\nhalt: H\nA _ 1 R B\nA 1 1 L C\nB _ 1 L A\nB 1 1 R B\nC _ 1 L B\nC 1 1 R H\n"
    desk.write(
        {
            "p.tm": palindrome,
            "bb.tm": beaver,
            "twice.tm": "start: a\na x x R a\na x y R a\n",
            "loop.tm": "start: a\na _ _ N a",
        }
    )
    for tape in ("", "a", "abba", "ababa", "ab", "abab"):
        done = desk.call("run_turing_machine", path="p.tm", tape=tape)
        assert done["state"] == ("yes" if tape == tape[::-1] else "no"), tape
    assert desk.call("run_turing_machine", path="bb.tm", tape="") == {"tape": "111111", "steps": 13, "state": "H"}
    for path, message in {"twice.tm": "line 3: a second rule for a x", "loop.tm": "not halted after 50 steps"}.items():
        with pytest.raises(Failure, match=message):
            desk.call("run_turing_machine", path=path, tape="", limit=50)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [("a(b|c)*", 2), ("(a|b)*abb", 4), ("(ab?)+|c", 4), ("", 1), (r"\(a\)?", 4), ("(a|aa|aaa)*", 1)],
)
def test_compile_pattern(desk: Desk, pattern: str, states: int) -> None:
    """Compile a regular expression to the smallest automaton without dead states, and match texts with it."""
    alphabet = sorted(set(re.findall(r"[abc]", pattern)) | set(re.findall(r"\\(.)", pattern)))
    texts = ["".join(t) for n in range(5) for t in itertools.product(alphabet, repeat=n)]
    done = desk.call("compile_pattern", pattern=pattern, texts=texts)
    assert done["matches"] == [re.fullmatch(pattern, text) is not None for text in texts]
    assert (done["states"], done["alphabet"]) == (states, alphabet)
    for wrong in ("(a", "a)", "*a", "a|+"):
        with pytest.raises(Failure, match=r"missing|not opened|nothing before"):
            desk.call("compile_pattern", pattern=wrong, texts=[])


def test_terminal_screen(desk: Desk) -> None:
    """Return the lines that a terminal shows after a recorded output: colours, cursor movements, erasing, long lines."""
    desk.write(
        {
            "log": "\x1b]0;title\x1b\\\x1b[1;31mError\x1b[0m: x\r\nDownloading\n  0%\r 50%\r100%\x1b[K done\n"
            "a\tb\nsecret\x1b[6D******\none\ntwo\x1b[A\x1b[3DONE\n\n"
            + "w" * 12
            + "\n\x1b[2;1Hdownloaded \x1b[1K\x1b[20B\n"
        }
    )
    screen = desk.call("terminal_screen", path="log", width=80)
    assert screen == ["Error: x", "", "100% done", "a       b", "******", "ONE", "two", "w" * 12]
    desk.write({"wide": "abcdefghij\nx"})
    assert desk.call("terminal_screen", path="wide", width=4) == ["abcd", "efgh", "ij", "x"]
    desk.write({"clear": "old\nold\x1b[2J\x1b[Hnew"})
    assert desk.call("terminal_screen", path="clear") == ["new"]


def test_repair_csv(desk: Desk) -> None:
    """Write a CSV file with broken quotes and any delimiter in the usual form; rows of the wrong width are reported."""
    desk.write(
        {
            "in.csv": 'id|name|note\n1|"Ann "the" boss"|"x|y"\n2|Bob \'s|5" disk\n'
            '3|"multi\nline"|""\n4|"say ""hi"""|z\n5|too|many|fields\n'
            '\n6|""|"ends"',
            "open.csv": 'a,b\n1,"never closed\n2,3\n',
        }
    )
    done = desk.call("repair_csv", source="in.csv", target="out.csv")
    assert done == {"delimiter": "|", "rows": 5, "rejected": [{"record": 6, "fields": ["5", "too", "many", "fields"]}]}
    assert list(csv.reader(io.StringIO(desk.read("out.csv")))) == [
        ["id", "name", "note"],
        ["1", 'Ann "the" boss', "x|y"],
        ["2", "Bob 's", '5" disk'],
        ["3", "multi\nline", ""],
        ["4", 'say "hi"', "z"],
        ["6", "", "ends"],
    ]
    with pytest.raises(Failure, match="record 2: a quote is never closed"):
        desk.call("repair_csv", source="open.csv", target="out2.csv")
    assert not (desk.work / "out2.csv").exists()


def test_replay_accounts(desk: Desk) -> None:
    """Replay transactions exactly once each: holds reduce what is available, and a reversal needs the money to be there."""
    rows = [
        {"id": "1", "kind": "deposit", "to": "a", "amount": "100.10"},
        {"id": "2", "kind": "transfer", "from": "a", "to": "b", "amount": "60.05"},
        {"id": "2", "kind": "transfer", "from": "a", "to": "b", "amount": "60.05"},
        {"id": "3", "kind": "hold", "from": "a", "amount": "30"},
        {"id": "4", "kind": "transfer", "from": "a", "to": "b", "amount": "10.06"},
        {"id": "5", "kind": "transfer", "from": "a", "to": "b", "amount": "10.05"},
        {"id": "6", "kind": "transfer", "from": "b", "to": "c", "amount": "70"},
        {"id": "7", "kind": "reverse", "of": "2"},
        {"id": "8", "kind": "release", "hold": "3"},
        {"id": "9", "kind": "hold", "from": "a", "amount": "29.99"},
        {"id": "10", "kind": "capture", "hold": "9", "to": "d"},
        {"id": "11", "kind": "capture", "hold": "9", "to": "d"},
        {"id": "12", "kind": "reverse", "of": "6"},
        {"id": "13", "kind": "reverse", "of": "6"},
        {"id": "14", "kind": "hold", "from": "d", "amount": "9.99"},
        {"id": "15", "kind": "deposit", "to": "a", "amount": "-5"},
        {"id": "16", "kind": "transfer", "from": "nobody", "to": "a", "amount": "0"},
        {"id": "17", "kind": "deposit", "to": "a", "amount": "ten"},
    ]
    desk.write({"t.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    done = desk.call("replay_accounts", path="t.jsonl")
    assert done["balances"] == {"a": "0.01", "b": "70.10", "c": "0.00", "d": "29.99"}
    assert sum(map(Decimal, done["balances"].values())) == Decimal("100.10")
    assert done["held"] == {"14": "9.99"}
    assert done["repeated"] == ["2"]
    assert {r["id"] for r in done["refused"]} == {"4", "7", "11", "13", "15", "16", "17"}


def test_advance_deploy(desk: Desk) -> None:
    """Keep a deployment's state in a file: who plans may not approve, and a third failure rolls back."""

    def advance(event: str, by: str = "bob") -> str:
        return desk.call("advance_deploy", path="d/web.json", event=event, by=by)["state"]

    (desk.work / "d").mkdir()
    desk.write({"d/web.json": '{"state": "planned", "attempts": 0, "history": [], "planned_by": "ann"}'})
    with pytest.raises(Failure, match="ann has planned it"):
        advance("approve", "ann")
    events = ["approve", "start", "fail", "retry", "fail", "retry"]
    assert [advance(e) for e in events] == ["approved", "running", "failed", "running", "failed", "running"]
    with pytest.raises(Failure, match="approve is not possible while running; possible: succeed, fail"):
        advance("approve")
    assert advance("fail") == "rolled back"
    kept = json.loads(desk.read("d/web.json"))
    assert kept["attempts"] == 3
    assert [h["event"] for h in kept["history"]] == [*events, "fail", "roll_back"]
    with pytest.raises(Failure, match="possible: nothing"):
        advance("start")
