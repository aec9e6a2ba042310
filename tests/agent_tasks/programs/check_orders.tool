import json
import tomllib
from datetime import datetime


@example(
    arguments={"machine": "m.toml", "events": "e.jsonl"},
    files={
        "m.toml": 'initial = "new"\nfinal = ["done"]\n[transitions.new]\npay = "paid"\n[transitions.paid]\nship = "done"\n',
        "e.jsonl": '{"order": "a", "event": "pay", "at": "2024-01-01T00:00:00"}\n{"order": "b", "event": "ship", "at": "2024-01-01T00:00:00"}\n{"order": "a", "event": "ship", "at": "2024-01-01T01:00:00"}\n',
    },
    result={
        "orders": {"a": {"state": "done", "open": False, "seconds": {"new": 0.0, "paid": 3600.0}}, "b": {"state": "new", "open": True, "seconds": {"new": 0.0}}},
        "illegal": [{"line": 2, "order": "b", "event": "ship", "state": "new", "allowed": ["pay"]}],
        "unreachable": [],
    },
)
def check_orders(machine: str, events: str) -> dict:
    """Replay the events of orders against a state machine and report illegal ones, the final states and the time in each state.

    Args:
        machine: A TOML file with initial, final and a table of transitions for each state.
        events: A file with one JSON object a line: order, event, at. Lines may be out of order in time.
    """
    definition = tomllib.loads(tools.read_file(path=machine))
    transitions = definition["transitions"]
    reachable, queue = {definition["initial"]}, [definition["initial"]]
    for state in queue:
        for after in transitions.get(state, {}).values():
            if after not in reachable:
                reachable.add(after)
                queue.append(after)

    records = []
    for number, line in enumerate(tools.read_file(path=events).splitlines(), 1):
        if line.strip():
            try:
                records.append((number, json.loads(line)))
            except json.JSONDecodeError as error:
                raise ToolError(f"{events}:{number}: {error}") from error
    records.sort(key=lambda r: (r[1]["at"], r[0]))

    orders, illegal = {}, []
    for number, record in records:
        at = datetime.fromisoformat(record["at"])
        order = orders.setdefault(record["order"], {"state": definition["initial"], "since": at, "seconds": {}})
        state = order["state"]
        allowed = transitions.get(state, {})
        if record["event"] not in allowed:
            illegal.append(
                {"line": number, "order": record["order"], "event": record["event"], "state": state, "allowed": sorted(allowed)}
            )
            order["seconds"].setdefault(state, 0.0)
            continue
        order["seconds"][state] = order["seconds"].get(state, 0.0) + (at - order["since"]).total_seconds()
        order["state"], order["since"] = allowed[record["event"]], at
    return {
        "orders": {
            name: {"state": o["state"], "open": o["state"] not in definition["final"], "seconds": o["seconds"]}
            for name, o in sorted(orders.items())
        },
        "illegal": illegal,
        "unreachable": sorted((set(transitions) | set(definition["final"])) - reachable),
    }
