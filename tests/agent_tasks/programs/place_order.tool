import json


def _post(url: str, value: dict) -> dict:
    answer = tools.http_request(
        url=url, method="POST", body=json.dumps(value, sort_keys=True), headers={"content-type": "application/json"}
    )
    if answer["status"] >= 400:
        raise ToolError(f"{url} answered {answer['status']}: {answer['body']}")
    return json.loads(answer["body"])


@example(
    arguments={"order": "o.json", "stock": "http://stock.test", "payment": "http://pay.test", "shipping": "http://ship.test"},
    files={"o.json": '{"id": "7", "total": 30, "items": [{"sku": "x", "count": 2}]}'},
    stubs={
        "http_request": {
            "$each": [
                {"status": 200, "body": '{"id": "r1"}'},
                {"status": 200, "body": '{"id": "p1"}'},
                {"status": 409, "body": "no carrier"},
                {"status": 200, "body": "{}"},
                {"status": 200, "body": "{}"},
            ]
        }
    },
    result={
        "state": "undone",
        "done": [],
        "undone": ["charge p1", "reservation r1"],
        "why": "http://ship.test/shipments answered 409: no carrier",
        "stuck": [],
    },
)
def place_order(order: str, stock: str, payment: str, shipping: str) -> dict:
    """Place an order at three services: reserve, charge, ship. If a step fails, what was done is undone, the last first.

    Args:
        order: The JSON file with the order: id, total, items with sku and count.
        stock: The address of the stock service.
        payment: The address of the payment service.
        shipping: The address of the shipping service.
    """
    data = json.loads(tools.read_file(path=order))
    done = []
    try:
        for item in data["items"]:
            answer = _post(f"{stock}/reservations", {"order": data["id"], **item})
            done.append(("reservation", answer["id"], f"{stock}/reservations/{answer['id']}/release"))
        answer = _post(f"{payment}/charges", {"order": data["id"], "amount": data["total"]})
        done.append(("charge", answer["id"], f"{payment}/charges/{answer['id']}/refund"))
        answer = _post(f"{shipping}/shipments", {"order": data["id"]})
        done.append(("shipment", answer["id"], ""))
    except ToolError as error:
        undone, stuck = [], []
        for what, number, url in reversed(done):
            try:
                _post(url, {})
                undone.append(f"{what} {number}")
            except ToolError as second:
                stuck.append(f"{what} {number}: {second.message}")
        return {"state": "stuck" if stuck else "undone", "done": [], "undone": undone, "why": error.message, "stuck": stuck}
    return {"state": "placed", "done": [f"{what} {number}" for what, number, _ in done], "undone": [], "why": None, "stuck": []}
