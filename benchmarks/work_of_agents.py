"""Sessions of made-up agents in four domains, as the ledger records them, with the truth about where each argument comes from.

A session has tasks, one for each message of its user. Tasks vary: lists have other lengths, loops stop early, agents choose, retry,
and look at other things in between. Values collide: dates, cities and small numbers are the same in unrelated results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from albert_tools.engine.call.provenance import Provenance
from albert_tools.engine.model.definition import ToolDefinition, ToolParameter
from albert_tools.engine.model.record_types import Entry
from albert_tools.engine.model.redaction import redacted
from albert_tools.engine.suggest.traces import Path


class Value(NamedTuple):
    """A value, and what it is the value of: equal values of different things are collisions. A user has given it, or a result."""

    of: str
    value: Any
    given: bool = False


class Record:
    """The entries of all sessions. `things` says for each call what is at each place of its result, and `used` which thing from a
    result each argument is."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.things: dict[str, dict[Path, str]] = {}
        self.used: dict[str, dict[str, str]] = {}
        #: The calls whose arguments the agent chose among several.
        self.chosen: set[str] = set()
        self.people: dict[str, str] = {}
        self.provenance = Provenance()


class Agent:
    """One session."""

    def __init__(self, record: Record, session: str, random: Random) -> None:
        self.record, self.session, self.random = record, session, random
        self.turn = 0

    def call(
        self, tool: str, arguments: dict[str, Any], result: Any = "done", *, ok: bool = True, chosen: bool = False
    ) -> Any:
        """Make a call. Returns its result with its values' things."""
        record, call = self.record, f"{len(self.record.entries):016x}"
        given = plain(arguments)
        data = {
            "call": call,
            "tool": tool,
            "arguments": redacted(given),
            "session": self.session,
            "turn": str(self.turn),
            "ok": ok,
        }
        if found := record.provenance.sources(self.session, given):
            data["from"] = found
        record.used[call] = {"/".join(map(str, path)): v.of for path, v in values(arguments) if not v.given}
        if chosen:
            record.chosen.add(call)
        if ok:
            record.things[call] = {path: v.of for path, v in values(result)}
            record.provenance.saw(self.session, call, plain(result))
        at = f"2026-01-{1 + len(record.entries) // 10**6:02}T08:00:00.000000Z"
        record.entries.append(Entry(at, len(record.entries) + 1, "call", data))
        return result

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return self.random.random() < share

    def number(self) -> str:
        """Digits of an id."""
        return f"{self.random.randrange(10**6):06}"

    def new(self, kind: str, value: Any = None, given: bool = False) -> Value:
        """A new thing of a kind. By default its value is an id."""
        number = self.number()
        return Value(f"{kind} {number} {self.random.random()}", f"{kind}-{number}" if value is None else value, given)

    def some(self, least: int = 1, most: int = 4) -> range:
        """As many rounds as a list has items."""
        return range(self.random.randint(least, most))

    def day(self) -> Value:
        """A date. Many are equal."""
        return self.new("date", f"2026-05-{self.random.randint(1, 9):02}")

    def until_tired(self, items: list[Any]) -> Iterator[Any]:
        """The items. One agent of eight stops before the end."""
        return iter(items[: self.random.randint(1, len(items))] if self.chance(0.12) else items)


def plain(tree: Any) -> Any:
    """A tree without things."""
    if isinstance(tree, Value):
        return tree.value
    if isinstance(tree, dict):
        return {key: plain(part) for key, part in tree.items()}
    return [plain(part) for part in tree] if isinstance(tree, list) else tree


def values(tree: Any, around: Path = ()) -> Iterator[tuple[Path, Value]]:
    """The values in a tree, with their paths."""
    if isinstance(tree, Value):
        yield around, tree
    elif isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from values(part, (*around, key))


# Travel


def reservations_of_user(a: Agent) -> None:
    user, city = a.new("user", given=True), a.new("city", a.random.choice(["Rome", "Oslo", "Bonn"]))
    found = a.call(
        "travel.get_user", {"user_id": user}, {"id": user, "city": city, "reservations": [a.new("R") for _ in a.some()]}
    )
    for code in a.until_tired(found["reservations"]):
        a.call(
            "travel.get_reservation", {"reservation_id": code}, {"id": code, "city": city, "date": a.day(), "bags": 1}
        )


def status_of_flights(a: Agent) -> None:
    code = a.new("R", given=True)
    flights = [{"flight": a.new("HAT"), "date": a.day()} for _ in a.some()]
    found = a.call("travel.get_reservation", {"reservation_id": code}, {"id": code, "flights": flights})
    for each in a.until_tired(found["flights"]):
        a.call(
            "travel.get_status",
            {"flight": each["flight"], "date": each["date"]},
            {"state": a.random.choice(["on time", "late"])},
        )


def book(a: Agent) -> None:
    day = a.day()._replace(given=True)
    where = {"origin": a.new("city", "Rome", True), "to": a.new("city", "Oslo", True), "date": day}
    found = a.call(
        "travel.search_flights", where, [{"flight": a.new("HAT"), "price": a.new("price", 90)} for _ in a.some(2, 5)]
    )
    chosen = a.random.choice(found)
    a.call("travel.book", {"flight": chosen["flight"], "date": day, "price": chosen["price"]}, chosen=True)


def cancel(a: Agent) -> None:
    code = a.new("R", given=True)
    found = a.call(
        "travel.get_reservation", {"reservation_id": code}, {"id": code, "payment": a.new("card"), "date": a.day()}
    )
    a.call("travel.cancel", {"reservation_id": code, "refund_to": found["payment"]})


# A shop


def orders_of_user(a: Agent) -> None:
    mail = a.new("mail", f"u{a.number()}@shop.example", True)
    user = a.call("shop.find_user", {"mail": mail}, {"user": a.new("user")})["user"]
    found = a.call(
        "shop.get_user", {"user_id": user}, {"id": user, "mail": mail, "orders": [a.new("W") for _ in a.some()]}
    )
    for order in a.until_tired(found["orders"]):
        a.call("shop.get_order", {"order_id": order}, {"id": order, "user": user, "items": [{"id": a.new("item")}]})


def products_of_order(a: Agent) -> None:
    order = a.new("W", given=True)
    items = [{"id": a.new("item"), "product": a.new("product"), "price": 12.5} for _ in a.some()]
    found = a.call("shop.get_order", {"order_id": order}, {"id": order, "items": items})
    for item in a.until_tired(found["items"]):
        a.call("shop.get_product", {"product_id": item["product"]}, {"name": "shoe", "stock": a.random.randrange(9)})


def give_back(a: Agent) -> None:
    order = a.new("W", given=True)
    content = {"id": order, "items": [{"id": a.new("item")} for _ in a.some(1, 3)], "payments": [{"id": a.new("card")}]}
    found = a.call("shop.get_order", {"order_id": order}, content)
    ids = [item["id"] for item in found["items"]]
    a.call("shop.return_items", {"order_id": order, "item_ids": ids, "refund_to": found["payments"][0]["id"]})


def exchange(a: Agent) -> None:
    product = a.new("product", given=True)
    found = a.call(
        "shop.get_product", {"product_id": product}, {"variants": [{"id": a.new("item")} for _ in a.some(2, 5)]}
    )
    new = a.random.choice(found["variants"])["id"]
    a.call("shop.exchange", {"order_id": a.new("W", given=True), "item_id": new}, chosen=True)


# An office


def read_folder(a: Agent) -> None:
    folder = a.new("folder", a.random.choice(["notes", "plans", "minutes"]), True)
    files = [{"path": a.new("path", f"{folder.value}/{a.number()}.md"), "size": 40} for _ in a.some(2, 5)]
    found = a.call("office.list_folder", {"folder": folder, "kind": "file"}, files)
    for each in a.until_tired(found):
        a.call("office.read_file", {"path": each["path"]}, f"The text of {each['path'].value}")


def newest_mail(a: Agent) -> None:
    found = a.call(
        "office.search_mails",
        {"query": a.new("query", a.number(), True)},
        {"mails": [a.new("M") for _ in a.some(1, 6)]},
    )
    a.call("office.read_mail", {"mail_id": found["mails"][0]}, {"from": "x@y.example", "text": "Hello"})


def write_to(a: Agent) -> None:
    name = a.new("name", given=True)
    contact = a.call(
        "office.find_contact", {"name": name}, {"name": name, "mail": a.new("mail", f"m{a.number()}@o.example")}
    )
    a.call("office.send_mail", {"to": contact["mail"], "text": f"Hello, about {a.number()}"})


def rooms_of_day(a: Agent) -> None:
    day = a.day()._replace(given=True)
    events = [{"title": "talk", "room": a.new("room")} for _ in a.some()]
    found = a.call("office.get_calendar", {"day": day}, {"day": day, "events": events})
    for event in a.until_tired(found["events"]):
        a.call("office.get_room", {"room": event["room"], "floor_plan": True}, {"seats": 10})


def ticket_note(a: Agent) -> None:
    found = a.call("office.get_ticket", {"number": a.new("ticket", given=True)}, {"key": a.new("KEY"), "age": 3})
    a.call("office.write_note", {"folder": "tickets", "text": f"See {found['key'].value} in the tracker"})


# A bank


def transactions(a: Agent) -> None:
    client = a.new("client", given=True)
    found = a.call("bank.get_client", {"client_id": client}, {"id": client, "accounts": [{"iban": a.new("DE")}]})
    a.call(
        "bank.list_transactions",
        {"account": found["accounts"][0]["iban"], "count": 20},
        [{"amount": 10, "day": a.day()}],
    )


def balance(a: Agent) -> None:
    token = a.call(
        "bank.log_in",
        {"client_id": a.new("client", given=True)},
        {"session_token": a.new("token", f"t{a.number()}x{a.number()}")},
    )
    a.call(
        "bank.get_balance", {"token": token["session_token"], "currency": "EUR"}, {"amount": a.random.randrange(500)}
    )


def transfer(a: Agent) -> None:
    found = a.call("bank.find_payee", {"name": a.new("name", given=True)}, {"iban": a.new("DE"), "bank": "B"})
    a.call("bank.transfer", {"to": found["iban"], "amount": a.new("amount", a.random.randint(10, 99), True)})


def rates(a: Agent) -> None:
    for currency in a.random.sample(["USD", "CHF", "SEK", "JPY"], a.random.randint(2, 4)):
        a.call("bank.get_rate", {"currency": currency, "base": "EUR"}, {"rate": a.random.random()})


TASKS: dict[str, list[Callable[[Agent], None]]] = {
    "travel": [reservations_of_user, status_of_flights, book, cancel],
    "shop": [orders_of_user, products_of_order, give_back, exchange],
    "office": [read_folder, newest_mail, write_to, rooms_of_day, ticket_note],
    "bank": [transactions, balance, transfer, rates],
}


def _tool(name: str, parameters: str, effect: str = "read") -> ToolDefinition:
    kinds: dict[str, Any] = {
        "item_ids": {"type": "array", "items": {"type": "string"}},
        "amount": {"type": "number"},
        "price": {"type": "number"},
        "count": {"type": "integer"},
        "floor_plan": {"type": "boolean"},
    }
    made = tuple(ToolParameter(p, kinds.get(p, {"type": "string"})) for p in parameters.split())
    return ToolDefinition(name, "Do it.", made, {}, (effect,))


TOOLS = {
    tool.name: tool
    for tool in (
        _tool("travel.get_user", "user_id"),
        _tool("travel.get_reservation", "reservation_id"),
        _tool("travel.get_status", "flight date"),
        _tool("travel.search_flights", "origin to date"),
        _tool("travel.book", "flight date price", "write"),
        _tool("travel.cancel", "reservation_id refund_to", "write"),
        _tool("shop.find_user", "mail"),
        _tool("shop.get_user", "user_id"),
        _tool("shop.get_order", "order_id"),
        _tool("shop.get_product", "product_id"),
        _tool("shop.return_items", "order_id item_ids refund_to", "write"),
        _tool("shop.exchange", "order_id item_id", "write"),
        _tool("office.list_folder", "folder kind"),
        _tool("office.read_file", "path"),
        _tool("office.search_mails", "query"),
        _tool("office.read_mail", "mail_id"),
        _tool("office.find_contact", "name"),
        _tool("office.send_mail", "to text", "network"),
        _tool("office.get_calendar", "day"),
        _tool("office.get_room", "room floor_plan"),
        _tool("office.get_ticket", "number"),
        _tool("office.write_note", "folder text", "write"),
        _tool("bank.get_client", "client_id"),
        _tool("bank.list_transactions", "account count"),
        _tool("bank.log_in", "client_id"),
        _tool("bank.get_balance", "token currency"),
        _tool("bank.find_payee", "name"),
        _tool("bank.transfer", "to amount", "write"),
        _tool("bank.get_rate", "currency base"),
        _tool("news", "topic"),
    )
}


def sessions(count: int, seed: int, people: int = 20, calls: float = float("inf")) -> Record:
    """The record of this many sessions, in turn of each domain; or of as many as make this many calls."""
    record, random = Record(), Random(seed)
    for i, domain in zip(range(count), itertools.cycle(TASKS), strict=False):
        session = f"{seed}-{i}"
        record.people[session] = f"person {random.randrange(people)}"
        agent = Agent(record, session, random)
        for _ in range(random.randint(2, 6)):
            agent.turn += 1
            if agent.chance(0.25):
                agent.call("news", {"topic": random.choice(["rain", "trains"])}, {"date": agent.day(), "city": "Rome"})
            if agent.chance(0.1):
                agent.call("news", {"topic": "nothing"}, ok=False)
            random.choice(TASKS[domain])(agent)
        if len(record.entries) >= calls:
            break
    return record
