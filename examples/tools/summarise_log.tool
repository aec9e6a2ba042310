import re
from collections import Counter

LINE = re.compile(r"(?P<time>\S+ \S+) (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<text>.*)")


@example(
    arguments={"path": "app.log"},
    files={
        "app.log": (
            "2025-03-01 10:00:00 INFO started\n"
            "2025-03-01 10:00:05 ERROR no route to host 17\n"
            "2025-03-01 10:00:09 ERROR no route to host 23\n"
            "  at connect()\n"
        ),
    },
    result={
        "lines": 4,
        "levels": {"INFO": 1, "ERROR": 2},
        "first": "2025-03-01 10:00:00",
        "last": "2025-03-01 10:00:09",
        "errors": [{"text": "no route to host N", "count": 2}],
    },
)
def summarise_log(path: str, top: int = 5) -> dict:
    """Summarise a log file: lines by level, first and last time, and the most frequent errors.

    Lines look like "2025-03-01 10:00:00 ERROR text"; others belong to the line before. Numbers in error texts are replaced
    by N, so that similar errors count as one.

    Args:
        path: The log file.
        top: The most errors to list.
    """
    lines = tools.read_file(path=path).splitlines()
    levels = Counter()
    errors = Counter()
    times = []
    for line in lines:
        match = LINE.fullmatch(line)
        if match is None:
            continue
        levels[match["level"]] += 1
        times.append(match["time"])
        if match["level"] in ("ERROR", "CRITICAL"):
            errors[re.sub(r"\d+", "N", match["text"])] += 1
    return {
        "lines": len(lines),
        "levels": levels,
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "errors": [{"text": text, "count": count} for text, count in errors.most_common(top)],
    }
