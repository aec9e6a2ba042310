from urllib.parse import urlsplit


@example(
    arguments={"urls": ["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1"], "threshold": 2},
    stubs={"http_request": {"$each": [{"status": 500, "body": ""}, {"$fails": "network_error"}, {"status": 200, "body": "b"}]}},
    result={
        "pages": {"http://b.test/1": "b"},
        "failed": {"http://a.test/1": "500", "http://a.test/2": "network_error"},
        "skipped": ["http://a.test/3"],
        "breakers": {"a.test": "open", "b.test": "closed"},
    },
)
def fetch_with_breaker(urls: list[str], threshold: int = 3, cooldown: int = 5) -> dict:
    """Fetch pages with a circuit breaker for each host.

    Args:
        urls: The addresses, in order.
        threshold: After so many failures in a row a host's breaker opens.
        cooldown: So many addresses are skipped while it is open; the next one is a trial that closes or opens it again.
    """
    breakers = {}
    pages, failed, skipped = {}, {}, []
    for url in urls:
        breaker = breakers.setdefault(urlsplit(url).netloc, {"state": "closed", "failures": 0, "skipped": 0})
        if breaker["state"] == "open":
            if breaker["skipped"] < cooldown:
                breaker["skipped"] += 1
                skipped.append(url)
                continue
            breaker["state"] = "half open"
        try:
            answer = tools.http_request(url=url)
            problem = str(answer["status"]) if answer["status"] >= 500 else None
        except ToolError as error:
            if error.code == "permission_denied":
                raise
            problem = error.code
        if problem is None:
            pages[url] = answer["body"]
            breaker.update({"state": "closed", "failures": 0})
            continue
        failed[url] = problem
        breaker["failures"] += 1
        if breaker["state"] == "half open" or breaker["failures"] >= threshold:
            breaker.update(state="open", skipped=0)
    return {
        "pages": pages,
        "failed": failed,
        "skipped": skipped,
        "breakers": {host: breaker["state"] for host, breaker in breakers.items()},
    }
