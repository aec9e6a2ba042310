import json


def share_price(name: str) -> float:
    """Return the price of a share at prices.example.org."""
    answer = tools.http_request(url=f"https://prices.example.org/latest?of={name}")
    return float(json.loads(answer["body"])["price"])
---
import json


def share_price(name: str) -> float:
    """Return the price of a share at prices.example.org."""
    answer = tools.http_request(url=f"https://prices.example.org/latest?of={name}")
    if answer["status"] != 200:
        raise ToolError(f"prices.example.org answered with {answer['status']}")
    return float(json.loads(answer["body"])["price"])
