import re
from urllib.parse import urldefrag, urljoin, urlsplit


def _look(url: str) -> dict:
    try:
        answer = tools.http_request(url=url)
    except ToolError as error:
        return {"url": url, "status": error.code, "links": []}
    headers = answer["headers"]
    if answer["status"] in (301, 302, 303, 307, 308):
        links = [urljoin(url, headers["location"])] if "location" in headers else []
    elif answer["status"] == 200 and headers.get("content-type", "").startswith("text/html"):
        body = re.sub(r"<!--.*?-->", "", answer["body"], flags=re.S)
        links = [urljoin(url, m.group(2)) for m in re.finditer(r"""<a\s[^>]*?href=(["'])(.*?)\1""", body, re.I)]
    else:
        links = []
    return {"url": url, "status": answer["status"], "links": [urldefrag(link).url for link in links]}


@example(
    arguments={"start": "http://a.test/"},
    stubs={
        "http_request": {
            "$each": [
                {"status": 200, "headers": {"content-type": "text/html"}, "body": "<a href='b#x'>b</a> <a class=c href=\"http://c.test/\">c</a>"},
                {"status": 404, "headers": {}, "body": ""},
            ]
        }
    },
    result={"pages": 2, "broken": [{"url": "http://a.test/b", "status": 404, "from": ["http://a.test/"]}], "outside": ["http://c.test/"]},
)
def crawl_site(start: str, depth: int = 3, limit: int = 100) -> dict:
    """Crawl a site from a page, level by level, and report broken links with the pages that have them, and links to other hosts.

    Args:
        start: The address of the first page.
        depth: How many links away from it to go.
        limit: The largest number of pages.
    """
    host = urlsplit(start).netloc
    sources, outside, found = {start: []}, set(), {}
    level = [start]
    for _ in range(depth + 1):
        level = level[: limit - len(found)]
        if not level:
            break
        pages = parallel(_look(url) for url in level)
        level = []
        for page in pages:
            found[page["url"]] = page["status"]
        for page in pages:
            for link in page["links"]:
                parts = urlsplit(link)
                if parts.scheme not in ("http", "https"):
                    continue
                if parts.netloc != host:
                    outside.add(link)
                    continue
                if link not in sources:
                    level.append(link)
                    sources[link] = []
                if page["url"] not in sources[link]:
                    sources[link].append(page["url"])
    broken = [
        {"url": url, "status": status, "from": sorted(sources[url])}
        for url, status in sorted(found.items())
        if isinstance(status, str) or status >= 400
    ]
    return {"pages": len(found), "broken": broken, "outside": sorted(outside)}
