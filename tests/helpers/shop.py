"""A shop with users, orders and mails, and sessions that call its tools by hand."""

from __future__ import annotations

from typing import Any

from albert_tools import Failure, primitive

#: The mails that were sent.
SENT: list[tuple[str, str]] = []


@primitive(effects=["read"])
def get_user(user_id: str, region: str = "eu") -> dict[str, Any]:
    """Get a user."""
    if user_id == "nobody":
        raise Failure("not_found", "there is no such user")
    orders = [{"id": f"W-{user_id}-{i}", "total": 10.5 + i} for i in range(2 + len(user_id) % 3)]
    return {
        "id": user_id,
        "mail": f"{user_id}@example.com",
        "orders": orders,
        "address": {"city": f"city-of-{user_id}"},
        "api_key": f"key-of-{user_id}-0123456789abcdef",
    }


@primitive(effects=["read"])
def get_order(order_id: str) -> dict[str, Any]:
    """Get an order."""
    return {"id": order_id, "parcel": f"P-{order_id}", "items": ["shoe", "sock"]}


@primitive(effects=["read"])
def track(parcel: str, carrier: str = "", api_key: str = "") -> str:
    """Track a parcel."""
    return f"on its way: {parcel}"


@primitive(effects=["network"], uses={"text": "payload"})
def send_mail(to: str, text: str, urgent: bool = False) -> str:
    """Send a mail."""
    SENT.append((to, text))
    return "sent"


@primitive(effects=["write"])
def pay(account: str, amount: float, order_id: str = "") -> str:
    """Pay an amount."""
    return "paid"


@primitive(effects=["read"], source="web")
def read_page(about: str) -> dict[str, Any]:
    """Read a page of somebody else."""
    return {"contact": f"{about}@elsewhere.example", "account": "DE00 6666 6666"}


@primitive(effects=["read"])
def report(about: dict[str, Any], orders: list[str]) -> dict[str, Any]:
    """Make a report."""
    return {"about": about, "orders": orders}


SHOP = [report, get_user, get_order, track, send_mail, pay, read_page]
#: Allows the tools that have effects.
RULES = {"allow": ["send_mail", "pay"]}
USERS = ["ann-lee-3421", "bob-kim-77", "cid-roe-5", "dee-fox-861", "eva-ray-19"]


class Agent:
    """A session. Its calls are made in turns."""

    def __init__(self, service: Any, within: str | None = None) -> None:
        self.service = service
        session, self.token = service.within(lambda s: s.open_session("test", within=within))
        self.id = session.id
        self.turn = 0

    def say(self) -> None:
        """Begin the next turn."""
        self.turn += 1

    def call(self, tool: str, **arguments: Any) -> Any:
        """Make a call and return its output."""
        return self.service.invoke(tool, arguments, session=self.token, turn=str(self.turn)).value()


def track_all(agent: Agent, user: str) -> None:
    """Look at a user, at each order, and at each parcel."""
    agent.say()
    orders = [agent.call("get_order", order_id=order["id"]) for order in agent.call("get_user", user_id=user)["orders"]]
    for order in orders:
        agent.call("track", parcel=order["parcel"])
