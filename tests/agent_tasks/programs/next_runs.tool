from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = {name: n for n, name in enumerate("sun mon tue wed thu fri sat".split())}


def _field(text: str, low: int, high: int, names: dict) -> set:
    values = set()

    def number(word):
        value = names.get(word.lower())
        if value is None:
            value = int(word)
        if not low <= value <= high:
            raise ToolError(f"{word} is not between {low} and {high}")
        return value

    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = [number(word) for word in span.split("-")]
        else:
            first = number(span)
            last = high if step else first
        values |= set(range(first, last + 1, int(step or 1)))
    return values


@example(
    arguments={"expression": "30 2 * * *", "after": "2024-03-30T12:00", "zone": "Europe/Berlin", "count": 2},
    result=["2024-04-01T02:30:00+02:00", "2024-04-02T02:30:00+02:00"],
)
@example(
    arguments={"expression": "0 0 13 * fri", "after": "2024-09-01T00:00", "zone": "UTC", "count": 3},
    result=["2024-09-06T00:00:00+00:00", "2024-09-13T00:00:00+00:00", "2024-09-20T00:00:00+00:00"],
)
@example(arguments={"expression": "0 0 * *", "after": "2024-09-01T00:00", "zone": "UTC"}, raises="tool_error")
def next_runs(expression: str, after: str, zone: str, count: int = 5) -> list[str]:
    """List the next times of a cron expression in a time zone. Times that a change to summer time skips are left out.

    Args:
        expression: Minute, hour, day of the month, month, day of the week.
        after: The local time to begin after, for example 2024-03-30T12:00.
        zone: The time zone, for example Europe/Berlin.
        count: How many times.
    """
    fields = expression.split()
    if len(fields) != 5:
        raise ToolError(f"{expression!r} has {len(fields)} fields, not 5")
    minutes = _field(fields[0], 0, 59, {})
    hours = _field(fields[1], 0, 23, {})
    days = _field(fields[2], 1, 31, {})
    months = _field(fields[3], 1, 12, _MONTHS)
    weekdays = {d % 7 for d in _field(fields[4], 0, 7, _DAYS)}
    begin = datetime.fromisoformat(after)
    tz = ZoneInfo(zone)
    found = []
    for offset in range(366 * 8):
        day = begin.date() + timedelta(days=offset)
        by_day, by_week = day.day in days, day.isoweekday() % 7 in weekdays
        if fields[2] == "*" or fields[4] == "*":
            fits = by_day and by_week
        else:
            fits = by_day or by_week
        if day.month not in months or not fits:
            continue
        for hour in sorted(hours):
            for minute in sorted(minutes):
                local = datetime(day.year, day.month, day.day, hour, minute)
                if local <= begin:
                    continue
                moment = local.replace(tzinfo=tz)
                if moment.astimezone(ZoneInfo("UTC")).astimezone(tz).replace(tzinfo=None) != local:
                    continue
                found.append(moment.isoformat())
                if len(found) == count:
                    return found
    return found
