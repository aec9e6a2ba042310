import json
from decimal import Decimal, InvalidOperation


def _apply(state: dict, t: dict) -> str | None:
    """Apply a transaction; return why it is refused, or None."""
    accounts, holds = state["accounts"], state["holds"]
    try:
        amount = Decimal(t.get("amount", "0"))
    except InvalidOperation:
        return "not an amount"
    if amount < 0:
        return "a negative amount"

    def available(name):
        return accounts.get(name, Decimal(0)) - sum(h["amount"] for h in holds.values() if h["account"] == name)

    kind = t["kind"]
    if kind == "deposit":
        accounts[t["to"]] = accounts.get(t["to"], Decimal(0)) + amount
        return None
    if kind == "transfer":
        if t["from"] not in accounts:
            return "no such account"
        if available(t["from"]) < amount:
            return "not enough money"
        accounts[t["from"]] -= amount
        accounts[t["to"]] = accounts.get(t["to"], Decimal(0)) + amount
        state["done"][t["id"]] = t
        return None
    if kind == "hold":
        if available(t["from"]) < amount:
            return "not enough money"
        holds[t["id"]] = {"account": t["from"], "amount": amount}
        return None
    if kind == "capture":
        if t["hold"] not in holds:
            return "no such hold"
        hold = holds.pop(t["hold"])
        accounts[hold["account"]] -= hold["amount"]
        accounts[t["to"]] = accounts.get(t["to"], Decimal(0)) + hold["amount"]
        return None
    if kind == "release":
        return None if holds.pop(t["hold"], None) else "no such hold"
    if kind == "reverse":
        original = state["done"].pop(t["of"], None)
        if original is None:
            return "nothing to reverse"
        if available(original["to"]) < Decimal(original["amount"]):
            state["done"][t["of"]] = original
            return "not enough money"
        accounts[original["to"]] -= Decimal(original["amount"])
        accounts[original["from"]] += Decimal(original["amount"])
        return None
    return f"no kind {kind}"


@example(
    arguments={"path": "t.jsonl"},
    files={
        "t.jsonl": """{"id": "1", "kind": "deposit", "to": "a", "amount": "10.10"}
{"id": "2", "kind": "hold", "from": "a", "amount": "10"}
{"id": "3", "kind": "transfer", "from": "a", "to": "b", "amount": "0.20"}
{"id": "4", "kind": "capture", "hold": "2", "to": "b"}
"""
    },
    result={"balances": {"a": "0.10", "b": "10.00"}, "held": {}, "refused": [{"id": "3", "why": "not enough money"}], "repeated": []},
)
def replay_accounts(path: str) -> dict:
    """Replay the transactions of accounts: deposits, transfers, holds, captures, releases and reversals; each id once.

    Args:
        path: A file with one JSON object a line.
    """
    state = {"accounts": {}, "holds": {}, "done": {}}
    seen, refused, repeated = set(), [], []
    total = Decimal(0)
    for line in tools.read_file(path=path).splitlines():
        transaction = json.loads(line)
        if transaction["id"] in seen:
            repeated.append(transaction["id"])
            continue
        seen.add(transaction["id"])
        why = _apply(state, transaction)
        if why:
            refused.append({"id": transaction["id"], "why": why})
        elif transaction["kind"] == "deposit":
            total += Decimal(transaction["amount"])
    assert sum(state["accounts"].values()) == total, "money was lost"
    return {
        "balances": {name: f"{balance:.2f}" for name, balance in sorted(state["accounts"].items())},
        "held": {name: f"{hold['amount']:.2f}" for name, hold in sorted(state["holds"].items())},
        "refused": refused,
        "repeated": repeated,
    }
