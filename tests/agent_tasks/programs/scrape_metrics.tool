import math
import re
from collections import defaultdict

_LINE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?$')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


def _parse(text: str) -> list[tuple[str, dict, float]]:
    samples = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise ValueError(f"{line!r} is not a sample")
        labels = {name: _unescape(value) for name, value in _LABEL.findall(match[2] or "")}
        samples.append((match[1], labels, float(match[3])))
    return samples


def _quantile(buckets: dict[float, float], q: float) -> float | None:
    bounds = sorted(buckets)
    total = buckets[bounds[-1]]
    if total == 0:
        return None
    rank, low, before = q * total, 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return low
            inside = buckets[bound] - before
            return low + (bound - low) * ((rank - before) / inside if inside else 1)
        low, before = bound, buckets[bound]
    return low


def _scrape(url: str) -> dict:
    try:
        answer = tools.http_request(url=url)
        if answer["status"] != 200:
            return {"error": f"status {answer['status']}", "samples": []}
        return {"error": None, "samples": _parse(answer["body"])}
    except (ToolError, ValueError) as error:
        return {"error": str(error), "samples": []}


@example(
    arguments={"urls": ["http://a.test/metrics", "http://b.test/metrics"], "quantile": 0.5},
    stubs={
        "http_request": {
            "$each": [
                {"status": 200, "body": 'hits{path="/",code="200"} 3\nt_bucket{le="1"} 2\nt_bucket{le="2"} 4\nt_bucket{le="+Inf"} 4\n'},
                {"status": 200, "body": '# TYPE hits counter\nhits{code="200",path="/"} 4\nhits{code="500",path="/"} 1 1700000000\n'},
            ]
        }
    },
    result={
        "totals": {'hits{code="200",path="/"}': 7.0, 'hits{code="500",path="/"}': 1.0},
        "quantiles": {"t": 1.0},
        "errors": {},
    },
)
def scrape_metrics(urls: list[str], quantile: float = 0.95) -> dict:
    """Add up the Prometheus metrics of several servers and estimate a quantile of each histogram.

    Args:
        urls: The addresses of the metrics.
        quantile: The quantile, from 0 to 1.
    """
    totals = defaultdict(float)
    histograms = defaultdict(lambda: defaultdict(float))
    errors = {}
    for url, page in zip(urls, parallel(_scrape(url) for url in urls)):
        if page["error"]:
            errors[url] = page["error"]
        for name, labels, value in page["samples"]:
            bound = labels.pop("le", None)
            listed = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
            if name.endswith("_bucket") and bound is not None:
                key = name.removesuffix("_bucket") + (f"{{{listed}}}" if listed else "")
                histograms[key][float(bound)] += value
            else:
                totals[name + (f"{{{listed}}}" if listed else "")] += value
    return {
        "totals": dict(sorted(totals.items())),
        "quantiles": {key: _quantile(buckets, quantile) for key, buckets in sorted(histograms.items())},
        "errors": errors,
    }
