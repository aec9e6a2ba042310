"""Tasks whose tool uses servers, some with a person's approval. Each docstring is what the user has asked for."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from albert_tools import Failure
from tests.agent_tasks.conftest import Desk


def test_fetch_with_breaker(desk: Desk) -> None:
    """Fetch pages with a circuit breaker for each host: it opens after failures in a row, and one trial closes it again."""
    failing = iter([False, True, False, True, True, True, False, True])

    def site(method: str, path: str, body: str) -> tuple[int, str]:
        return (500, "no") if next(failing) else (200, f"page {path}")

    def missing(method: str, path: str, body: str) -> tuple[int, str]:
        return 404, "nothing"

    a, b = desk.serve(site), desk.serve(missing)
    urls = [f"{a}/{n}" for n in range(12)]
    done = desk.call("fetch_with_breaker", urls=[*urls[:3], f"{b}/x", *urls[3:]], threshold=2, cooldown=2)
    # 0 ok, 1 fails, 2 ok, 3 and 4 fail: open; 5 and 6 skipped; the trial 7 fails; 8 and 9 skipped; the trial 10 is right, 11 fails.
    assert done["pages"] == {urls[0]: "page /0", urls[2]: "page /2", f"{b}/x": "nothing", urls[10]: "page /10"}
    assert list(done["failed"].items()) == [(urls[n], "500") for n in (1, 3, 4, 7, 11)]
    assert done["skipped"] == [urls[n] for n in (5, 6, 8, 9)]
    assert set(done["breakers"].values()) == {"closed"}
    assert len(desk.requests) == 9


def test_sync_issues(desk: Desk) -> None:
    """Keep a copy of a tracker's issues: pages by the Link header, pauses when it is busy, only newer ones the second time."""
    issues = [{"id": n, "title": f"issue {n}", "updated_at": f"2024-01-{n:02}"} for n in range(1, 6)]
    busy = iter([429])

    def site(method: str, path: str, body: str) -> tuple[Any, ...]:
        query = parse_qs(urlsplit(path).query)
        page, since = int(query.get("page", ["1"])[0]), query.get("since", [""])[0]
        if page == 2 and next(busy, None):
            return 429, "", {"Retry-After": "0"}
        newer = [i for i in issues if i["updated_at"] > since]
        rest = len(newer) > page * 2
        link = (
            f'</issues?page={page + 1}&since={since}>; rel="next", </issues>; rel="first"'
            if rest
            else "</issues>; rel=first"
        )
        return 200, newer[page * 2 - 2 : page * 2], {"Link": link}

    url = desk.serve(site) + "/issues"
    assert desk.call("sync_issues", url=url, path="copy.json") == {"new": [1, 2, 3, 4, 5], "changed": [], "pages": 3}
    assert len(desk.requests) == 4
    issues[0] |= {"title": "changed", "updated_at": "2024-02-01"}
    issues.append({"id": 6, "title": "new", "updated_at": "2024-02-02"})
    assert desk.call("sync_issues", url=url, path="copy.json") == {"new": [6], "changed": [1], "pages": 1}
    kept = json.loads(desk.read("copy.json"))
    assert list(kept["issues"].values()) == sorted(issues, key=lambda i: i["id"])
    assert desk.call("sync_issues", url=url, path="copy.json") == {"new": [], "changed": [], "pages": 1}


def test_crawl_site(desk: Desk) -> None:
    """Crawl a site level by level within a depth, follow its redirects, and report broken links with the pages that have them."""
    pages = {
        "/": '<a href="/a/">A</a> <A class="x" HREF=\'b.html#top\'>B</A><!-- <a href="/hidden">h</a> --><a href="mailto:x@y">m</a>',
        "/a/": '<a href="../b.html">B</a><a href="c">C</a><a href="http://other.test/x">other</a><a href="/gone">g</a>',
        "/a/c": '<a href="/deep">d</a><a href="/gone#x">g</a>',
        "/new": '<a href="/">home</a>',
        "/deep": '<a href="/deeper">d</a>',
    }

    def site(method: str, path: str, body: str) -> tuple[Any, ...]:
        if path == "/b.html":
            return 301, "", {"Location": "/new"}
        return (200, pages[path], {"Content-Type": "text/html; charset=utf-8"}) if path in pages else (404, "")

    url = desk.serve(site)
    assert desk.call("crawl_site", start=f"{url}/", depth=2) == {
        "pages": 6,
        "broken": [{"url": f"{url}/gone", "status": 404, "from": [f"{url}/a/", f"{url}/a/c"]}],
        "outside": ["http://other.test/x"],
    }
    assert desk.call("crawl_site", start=f"{url}/", depth=9, limit=3)["pages"] == 3
    assert desk.call("crawl_site", start=f"{url}/")["pages"] == 7


def test_place_order(desk: Desk) -> None:
    """Place an order at three services. A person approves each charge. What fails or is refused undoes the steps before it, the
    last first, and what can't be undone is reported."""
    state: dict[str, Any] = {"carrier": True, "refund": True, "open": set(), "charged": 0}

    def stock(method: str, path: str, body: str) -> tuple[Any, ...]:
        if path == "/reservations":
            number = f"r{len(state['open']) + 1}"
            if json.loads(body)["sku"] == "none":
                return 409, "sold out"
            state["open"].add(number)
            return 201, {"id": number}
        state["open"].discard(path.split("/")[2])
        return 200, {}

    def payment(method: str, path: str, body: str) -> tuple[Any, ...]:
        if path == "/charges":
            state["charged"] += json.loads(body)["amount"]
            return 201, {"id": "c1"}
        if not state["refund"]:
            return 500, "later"
        state["charged"] = 0
        return 200, {}

    def shipping(method: str, path: str, body: str) -> tuple[Any, ...]:
        return (201, {"id": "s1"}) if state["carrier"] else (503, "no carrier")

    # The payment service has a name that needs approval.
    where = {"stock": desk.serve(stock), "payment": desk.serve(payment, "localhost"), "shipping": desk.serve(shipping)}
    items = [{"sku": "x", "count": 1}, {"sku": "y", "count": 2}]
    desk.write(
        {
            "o.json": json.dumps({"id": "7", "total": 30, "items": items}),
            "none.json": json.dumps({"id": "8", "total": 9, "items": [*items, {"sku": "none", "count": 1}]}),
        }
    )
    placed = desk.call("place_order", order="o.json", **where)
    assert (placed["state"], placed["done"]) == (
        "placed",
        ["reservation r1", "reservation r2", "charge c1", "shipment s1"],
    )
    assert desk.questions == ["http_request"]
    assert state["charged"] == 30

    state |= {"open": set(), "charged": 0}
    failed = desk.call("place_order", order="none.json", **where)
    assert failed["undone"] == ["reservation r2", "reservation r1"]
    assert failed["why"].endswith("answered 409: sold out")
    assert (state["open"], state["charged"], desk.questions) == (set(), 0, ["http_request"])

    state["carrier"] = False
    failed = desk.call("place_order", order="o.json", **where)
    assert failed["undone"] == ["charge c1", "reservation r2", "reservation r1"]
    assert (state["open"], state["charged"]) == (set(), 0)

    state["refund"] = False
    failed = desk.call("place_order", order="o.json", **where)
    assert (failed["state"], failed["undone"]) == ("stuck", ["reservation r2", "reservation r1"])
    assert failed["stuck"][0].startswith("charge c1: ")
    assert (state["open"], state["charged"]) == (set(), 30)

    state["charged"] = 0
    desk.refused.add("http_request")
    failed = desk.call("place_order", order="o.json", **where)
    assert (failed["state"], failed["undone"]) == ("undone", ["reservation r2", "reservation r1"])
    assert (state["open"], state["charged"]) == (set(), 0)


def test_upload_in_parts(desk: Desk) -> None:
    """Upload a file in parts, checking each part's hash; repeat parts that fail, and abort if one can't be sent."""
    parts: dict[str, str] = {}
    state: dict[str, Any] = {"bad": iter([0, 1, 0, 2, 0, 0]), "aborted": 0}

    def site(method: str, path: str, body: str) -> tuple[Any, ...]:
        if method == "DELETE":
            state["aborted"] += 1
            return 204, ""
        if method == "PUT":
            bad = next(state["bad"], 0)
            if bad == 1:
                return 500, "", {"ETag": '"x"'}
            parts[path] = body
            return 200, "", {"ETag": f'"{"x" if bad else hashlib.md5(body.encode()).hexdigest()}"'}
        if path.endswith("/complete"):
            listed = json.loads(body)["parts"]
            content = "".join(parts[f"/uploads/u/{p['number']}"] for p in listed)
            assert [hashlib.md5(parts[f"/uploads/u/{p['number']}"].encode()).hexdigest() for p in listed] == [
                p["md5"] for p in listed
            ]
            state["content"] = content
            return 200, {"size": len(content.encode())}
        return 201, "", {"Location": "/uploads/u"}

    url = desk.serve(site)
    content = "0123456789\n" * 20
    desk.write({"f.txt": content, "empty.txt": "", "umlaut.txt": "ä" * 50})
    done = desk.call("upload_in_parts", path="f.txt", url=url, part_size=64)
    assert done == {"upload": f"{url}/uploads/u", "parts": 4, "retried": 2}
    assert state["content"] == content
    assert desk.call("upload_in_parts", path="empty.txt", url=url)["parts"] == 1
    assert desk.call("upload_in_parts", path="umlaut.txt", url=url, part_size=33)["parts"] == 4
    assert state["content"] == "ä" * 50
    state["bad"] = iter([0, 1, 1, 1])
    with pytest.raises(Failure, match="part 2 failed 3 times"):
        desk.call("upload_in_parts", path="f.txt", url=url, part_size=64)
    assert state["aborted"] == 1


def test_run_remote_job(desk: Desk) -> None:
    """Start a job at a service, wait for it, and save its result if the hash is right; cancel it when it takes too long."""
    state: dict[str, Any] = {}

    def site(method: str, path: str, body: str) -> tuple[Any, ...]:
        if method == "POST":
            state["left"] = list(state["script"])
            return (202, {"id": "j1"}) if json.loads(body)["query"] != "bad" else (400, "no such table")
        if method == "DELETE":
            state["cancelled"] = True
            return 204, ""
        if path == "/results/1":
            return 200, "a,b\n1,2\n"
        return 200, state["left"].pop(0) if len(state["left"]) > 1 else state["left"][0]

    digest = hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    finished = {"state": "finished", "result": "/results/1", "sha256": digest}
    state["script"] = [{"state": "queued"}, {"state": "running"}, {"state": "running"}, finished]
    url = desk.serve(site)
    done = desk.call("run_remote_job", url=url, query="select", target="r.csv")
    assert done == {"job": "j1", "states": ["queued", "running", "finished"], "size_bytes": 8}
    assert desk.read("r.csv") == "a,b\n1,2\n"
    for script, query, polls, message in (
        ([finished | {"sha256": "0"}], "x", 1, "the result of j1 is damaged"),
        ([{"state": "failed", "reason": "disk full"}], "x", 1, "j1 failed: disk full"),
        ([{"state": "running"}], "x", 2, "j1 is not finished; it was cancelled"),
        ([finished], "bad", 1, "not accepted: 400 no such table"),
    ):
        state["script"] = script
        with pytest.raises(Failure, match=message):
            desk.call("run_remote_job", url=url, query=query, target="other.csv", polls=polls)
    assert state["cancelled"]
    assert not (desk.work / "other.csv").exists()


def test_validate_requests(desk: Desk) -> None:
    """Check recorded requests against the OpenAPI description of a server, with references, alternatives and nested schemas."""
    pet = {
        "type": "object",
        "required": ["kind", "tags"],
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": ["cat", "dog"]},
            "name": {"type": ["string", "null"], "pattern": "^[A-Z]"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "age": {"type": "integer", "minimum": 0, "maximum": 40},
            "parents": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
            "chip": {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^x"}]},
        },
    }
    schema = {"$ref": "#/components/schemas/Pet"}
    api = {
        "paths": {
            "/pets": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}, "get": {}},
            "/pets/{id}/photo.v1": {"put": {}},
        },
        "components": {"schemas": {"Pet": pet}},
    }
    url = desk.serve(lambda method, path, body: (200, api) if path == "/api.json" else (404, ""))
    good = {"kind": "cat", "tags": ["a"], "name": None, "chip": "x1", "parents": [{"kind": "dog", "tags": []}]}
    bad = {
        "kind": "cow",
        "tags": ["a", "a"],
        "name": "tom",
        "age": True,
        "chip": "1",
        "parents": [{"tags": [1]}],
        "more": 1,
    }
    rows = [("POST", "/pets", good), ("GET", "/pets", None), ("PUT", "/pets/7/photo.v1", None)]
    rows += [
        ("POST", "/pets", bad),
        ("DELETE", "/pets", None),
        ("PUT", "/pets/7/photoxv1", None),
        ("POST", "/pets", {**good, "age": 41}),
    ]
    desk.write({"r.jsonl": "".join(json.dumps({"method": m, "path": p, "body": b}) + "\n" for m, p, b in rows)})
    report = desk.call("validate_requests", api=f"{url}/api.json", requests="r.jsonl")
    assert {r["line"]: sorted(r["problems"]) for r in report} == {
        4: [
            "body.age: not of type integer",
            "body.chip: fits 0 of 2 alternatives",
            "body.kind: 'cow' is not one of cat, dog",
            "body.name: does not match ^[A-Z]",
            "body.parents[0].tags[0]: not of type string",
            "body.parents[0]: kind is missing",
            "body.tags: has an item twice",
            "body: more is not known",
        ],
        5: ["DELETE is not possible for /pets"],
        6: ["no path of the API is like /pets/7/photoxv1"],
        7: ["body.age: more than 40"],
    }
    with pytest.raises(Failure, match="answered 404"):
        desk.call("validate_requests", api=f"{url}/none", requests="r.jsonl")


def test_scrape_metrics(desk: Desk) -> None:
    """Add up the Prometheus metrics of several servers, estimate a quantile of each histogram, and report servers that fail."""
    first = (
        '# HELP hits Requests.\n# TYPE hits counter\nhits{path="/a,b",code="200"} 3\nhits{code="500",path="a\\"}b"} 1e1\n'
        'up 1\nsize NaN\nt_seconds_bucket{le="0.1"} 50\nt_seconds_bucket{le="1"} 90\nt_seconds_bucket{le="+Inf"} 100\n'
        "t_seconds_sum 33.5\nt_seconds_count 100\n"
    )
    second = (
        'hits{code="200",path="/a,b"} 4 1700000000\nup 1\n'
        't_seconds_bucket{le="0.1"} 50\nt_seconds_bucket{le="1"} 90\nt_seconds_bucket{le="+Inf"} 100\n'
    )
    a, b = desk.serve(lambda *_: (200, first.replace("size NaN\n", ""))), desk.serve(lambda *_: (200, second))
    broken, away = desk.serve(lambda *_: (200, "what is this")), desk.serve(lambda *_: (503, ""))
    urls = [f"{u}/metrics" for u in (a, b, broken, away)]
    done = desk.call("scrape_metrics", urls=urls, quantile=0.7)
    assert done["totals"] == {
        'hits{code="200",path="/a,b"}': 7.0,
        'hits{code="500",path="a"}b"}': 10.0,
        "t_seconds_count": 100.0,
        "t_seconds_sum": 33.5,
        "up": 2.0,
    }
    assert done["quantiles"] == {"t_seconds": pytest.approx(0.55)}
    assert set(done["errors"]) == {urls[2], urls[3]}
    assert done["errors"][urls[3]] == "status 503"
    assert desk.call("scrape_metrics", urls=urls[:1], quantile=0.99)["quantiles"] == {"t_seconds": 1.0}


def test_rotate_keys(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the old keys of several services, signing in with secrets. If a use can't be moved, the step is taken back, and the
    other services go on."""
    monkeypatch.setenv("ALBERT_SECRET_MAIL", "mail-token-1234567")
    new = {"created": 4_000_000_000, "uses": []}

    def service(keys: dict[str, Any], stuck: str = "") -> str:
        def site(method: str, path: str, body: str) -> tuple[Any, ...]:
            _, kind, *rest = path.split("/")
            if kind == "uses":
                if rest[0] == stuck:
                    return 409, "in use"
                for key in keys.values():
                    key["uses"] = [use for use in key["uses"] if use != rest[0]]
                keys[json.loads(body)["key"]]["uses"].append(rest[0])
                return 200, {}
            if method == "POST":
                number = f"new-{json.loads(body)['replaces']}"
                keys[number] = {**new, "uses": []}
                return 201, {"id": number}
            if method == "DELETE":
                del keys[rest[0]]
                return 204, ""
            return 200, [{"id": number, **key} for number, key in keys.items()]

        return desk.serve(site)

    mail = {"k1": {"created": 1_700_000_000, "uses": ["web", "cron"]}, "k2": {"created": 4_000_000_000, "uses": []}}
    chat = {"k3": {"created": 1_600_000_000, "uses": ["bot", "desk"]}}
    services = [
        {"name": "chat", "url": service(chat, stuck="desk"), "secret": "MAIL"},
        {"name": "mail", "url": service(mail), "secret": "MAIL"},
    ]
    desk.write({"services.json": json.dumps(services)})
    assert desk.call("rotate_keys", path="services.json", max_age_days=90) == [
        {"service": "chat", "rotated": [], "kept": [], "error": "chat: PUT /uses/desk answered 409"},
        {"service": "mail", "rotated": [{"old": "k1", "new": "new-k1"}], "kept": ["k2"], "error": None},
    ]
    assert {number: sorted(key["uses"]) for number, key in mail.items()} == {"k2": [], "new-k1": ["cron", "web"]}
    assert {number: sorted(key["uses"]) for number, key in chat.items()} == {"k3": ["bot", "desk"]}
    assert all("authorization: bearer mail-token-1234567" in head.lower() for head in desk.heads)
