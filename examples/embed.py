"""An application with two primitives of its own and a tool that uses them.

Run it with ``python examples/embed.py``. All its files are in a temporary folder.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TypedDict

from albert_tools import Failure, SourceError, ToolService, primitive


class Order(TypedDict):
    """An order in the application's database."""

    id: int
    customer: str
    total: float


ORDERS: list[Order] = [
    {"id": 1, "customer": "Ada", "total": 30.0},
    {"id": 2, "customer": "Grace", "total": 12.5},
    {"id": 3, "customer": "Ada", "total": 7.5},
]


@primitive(effects=["read"], family="shop")
def orders_of(customer: str) -> list[Order]:
    """List a customer's orders as [{"id", "customer", "total"}], oldest first.

    Fails with `not_found` if there is no such customer.

    Args:
        customer: The customer's name.
    """
    found = [order for order in ORDERS if order["customer"] == customer]
    if not found:
        raise Failure("not_found", f"no customer is named {customer!r}")
    return found


@primitive(effects=["read"], family="shop")
async def exchange_rate(currency: str) -> float:
    """Return the rate from euro to a currency.

    Args:
        currency: For example "USD".
    """
    await asyncio.sleep(0)  # an application would ask its bank here
    return {"EUR": 1.0, "USD": 1.25}[currency]


SOURCE = '''
@example(
    arguments={"customers": ["Ada", "Nobody"], "currency": "USD"},
    stubs={"orders_of": {"$each": [[{"id": 1, "customer": "Ada", "total": 10.0}], {"$fails": "not_found"}]}, "exchange_rate": 2.0},
    result={"Ada": 20.0},
)
def totals(customers: list[str], currency: str = "EUR") -> dict[str, float]:
    """Add up the orders of customers; unknown customers are left out.

    Args:
        customers: Their names.
        currency: The currency of the totals.
    """
    rate = tools.exchange_rate(currency=currency)
    found = {}
    for customer in customers:
        try:
            orders = tools.orders_of(customer=customer)
        except ToolError as error:
            if error.code != "not_found":
                raise
            print(f"{customer} is not a customer")
            continue
        found[customer] = rate * sum(order["total"] for order in orders)
    return found
'''


async def main() -> dict[str, float]:
    """Define the tool, run it, and show two mistakes."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        async with ToolService.open(
            home=Path(folder) / "albert", workspace=workspace, primitives=[orders_of, exchange_rate]
        ) as service:
            definition = await service.define(SOURCE)
            print("saved", definition.signature())

            def show(tool: str, text: str) -> None:
                print(f"{tool} says: {text}", end="")

            result = await service.invoke("totals", {"customers": ["Ada", "Grace", "Zoe"], "currency": "USD"}, log=show)
            print(result.value())

            wrong = await service.invoke("totals", {"customers": "Ada", "curency": "USD"})
            assert wrong.error is not None
            print(wrong.error.message)

            try:
                await service.define(SOURCE.replace("orders_of(customer", "order_of(customer"))
            except SourceError as refused:
                print(refused)
            return dict(result.value())


if __name__ == "__main__":
    asyncio.run(main())
