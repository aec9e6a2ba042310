# JSON round trip
import json

def t() -> Any:
    """Parse."""
    x = {"b": [1, 2.0, None, True], "a": "é\n"}
    return [json.dumps(x), json.dumps(x, ensure_ascii=False, sort_keys=True), json.dumps([1, {"a": 2}], indent=2), json.dumps([1, 2], separators=(",", ":")), json.loads('{"a": [1, 1.0, "x", null], "a": 2}'), json.dumps({1: True, None: 2}), json.dumps((1, 2))]
# result: ['{"b": [1, 2.0, null, true], "a": "\\u00e9\\n"}', '{"a": "é\\n", "b": [1, 2.0, null, true]}', '[\n  1,\n  {\n    "a": 2\n  }\n]', "[1,2]", {"a": 2}, '{"1": true, "null": 2}', "[1, 2]"]
---
# text that is not JSON
import json

def t(text: str) -> Any:
    """Parse."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        return [str(e), isinstance(e, ValueError)]
# arguments: {"text": "{x"}
# result: ["Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", True]
---
# JSON of values that JSON can't express
import json
from datetime import date

def t() -> Any:
    """Parse."""
    return [json.dumps({"d": date(2024, 2, 29)}, default=str), json.dumps([{1, 2}])]
# raises: TypeError "Object of type set is not JSON serializable"
---
# dates and times
from datetime import UTC, date, datetime, timedelta, timezone

def t() -> Any:
    """Date."""
    a = datetime.fromisoformat("2024-02-28T23:30:00+00:00")
    b = a + timedelta(hours=1)
    c = datetime.strptime("03/04/2024 05:06", "%d/%m/%Y %H:%M")
    return [
        b.isoformat(), (b - a).total_seconds(), (date(2024, 3, 1) - date(2024, 2, 1)).days, c.strftime("%Y-%m-%d %H:%M %A"),
        a.astimezone(timezone(timedelta(hours=2))).isoformat(), f"{c:%d %b %y}", date(2024, 1, 1).isocalendar()[1],
        datetime(1970, 1, 2, tzinfo=UTC).timestamp(), datetime.fromtimestamp(0, tz=UTC).year, str(timedelta(days=1, seconds=5)),
        a < b, a.date().isoformat(), date.fromisoformat("2024-12-31").weekday(), c.hour,
    ]
# result: ["2024-02-29T00:30:00+00:00", 3600.0, 29, "2024-04-03 05:06 Wednesday", "2024-02-29T01:30:00+02:00", "03 Apr 24", 1, 86400.0, 1970, "1 day, 0:00:05", True, "2024-02-28", 1, 5]
---
# a date can't leave the program
from datetime import date

def t() -> Any:
    """Date."""
    return [date(2024, 1, 2)]
# raises: not_json "the result holds a date at [0], which can't leave the program: value.isoformat()"
---
# an invalid date
from datetime import datetime

def t() -> Any:
    """Date."""
    return datetime.strptime("2024-13-01", "%Y-%m-%d")
# raises: ValueError "time data '2024-13-01' does not match format '%Y-%m-%d'"
---
# itertools
import itertools

def t() -> Any:
    """Chain."""
    return [
        list(itertools.chain([1], "ab")), list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.islice(range(9), 2, 6, 2)),
        list(itertools.accumulate([1, 2, 3])), list(itertools.accumulate([1, 2, 3], lambda a, b: a * b, initial=1)),
        ["".join(p) for p in itertools.product("ab", repeat=2)], list(itertools.combinations([1, 2, 3], 2)), len(list(itertools.permutations("abc"))),
        list(itertools.zip_longest([1, 2], "a", fillvalue="-")), list(itertools.pairwise([1, 2, 3])), list(itertools.takewhile(lambda x: x < 3, [1, 2, 3, 1])),
        list(itertools.dropwhile(lambda x: x < 3, [1, 2, 3, 1])), list(itertools.filterfalse(None, [0, 1, ""])), list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.starmap(lambda a, b: a + b, [(1, 2)])),
    ]
# result: [[1, "a", "b"], [1, 2, 3], [2, 4], [1, 3, 6], [1, 1, 2, 6], ["aa", "ab", "ba", "bb"], [[1, 2], [1, 3], [2, 3]], 6, [[1, "a"], [2, "-"]], [[1, 2], [2, 3]], [1, 2], [3, 1], [0, ""], ["a", "c"], [3]]
---
# reduce
from functools import reduce

def t() -> Any:
    """Fold."""
    return [reduce(lambda a, b: a * b, [1, 2, 3, 4]), reduce(lambda a, b: {**a, b: len(a)}, "xy", {}), reduce(max, [3, 9, 2])]
# result: [24, {"x": 0, "y": 1}, 9]
---
# CSV reading and writing
import csv
import io

def t() -> Any:
    """Table."""
    text = 'name,n\n"a, b",1\n"say ""hi""",2\n'
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=["n", "name"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
    plain = io.StringIO()
    csv.writer(plain, delimiter=";").writerows([[1, "a;b"], [None, ""]])
    return [rows, out.getvalue(), plain.getvalue(), list(csv.reader(["a\tb"], delimiter="\t"))]
# result: [[{"name": "a, b", "n": "1"}, {"name": 'say "hi"', "n": "2"}], 'n,name\n1,"a, b"\n2,"say ""hi"""\n', '1;"a;b"\r\n;\r\n', [["a", "b"]]]
---
# CSV rows that are too long and too short
import csv

def t() -> Any:
    """Table."""
    return list(csv.DictReader("a,b\n1\n1,2,3".splitlines(), restkey="more", restval="-"))
# result: [{"a": "1", "b": "-"}, {"a": "1", "b": "2", "more": ["3"]}]
---
# StringIO
import io

def t() -> Any:
    """Buffer."""
    s = io.StringIO("a\nb\nc")
    first = s.readline()
    rest = s.read()
    s.seek(0)
    lines = [line.strip() for line in s]
    out = io.StringIO()
    n = out.write("xy")
    out.writelines(["1", "2"])
    print("z", end="")
    return [first, rest, lines, n, out.getvalue(), out.tell()]
# prints: "z"
# result: ["a\n", "b\nc", ["a", "b", "c"], 2, "xy12", 4]
---
# digests and encodings
import base64
import hashlib
import uuid

def t() -> Any:
    """Digest."""
    return [hashlib.sha256(b"abc").hexdigest()[:16], hashlib.md5(b"").hexdigest(), base64.b64encode(b"hi\xff").decode(), base64.b64decode("aGk=").decode(), base64.urlsafe_b64encode(b"\xfb\xff").decode(), str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))]
# result: ["ba7816bf8f01cfea", "d41d8cd98f00b204e9800998ecf8427e", "aGn/", "hi", "-_8=", "aad03681-8b63-5304-89e0-8ca8f49461b5"]
---
# heaps and bisect
import bisect
import heapq

def t() -> Any:
    """Order."""
    h = []
    for x in [5, 1, 4, 2]:
        heapq.heappush(h, x)
    xs = [1, 3, 5]
    bisect.insort(xs, 4)
    return [heapq.heappop(h), heapq.nsmallest(2, h), heapq.nlargest(1, ["a", "bbb"], key=len), list(heapq.merge([1, 4], [2, 3])), xs, bisect.bisect_left(xs, 3), bisect.bisect_right(xs, 3)]
# result: [1, [2, 4], ["bbb"], [1, 2, 3, 4], [1, 3, 4, 5], 1, 2]
---
# differences of texts
import difflib

def t() -> Any:
    """Compare."""
    a, b = ["x", "y", "z"], ["x", "Y", "z"]
    return [list(difflib.unified_diff(a, b, "a", "b", lineterm=""))[2:], difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2)]
# result: [["@@ -1,3 +1,3 @@", " x", "-y", "+Y", " z"], ["apple", "ape"], 0.75]
---
# paths are text
from posixpath import basename, dirname, join, normpath, relpath, splitext

def t() -> Any:
    """Path."""
    return [join("a", "b", "c.txt"), join("a", "/b"), basename("a/b.txt"), dirname("a/b.txt"), splitext("a/b.tar.gz"), normpath("a/./b/../c"), relpath("/a/b", start="/a/c"), splitext(".bashrc")]
# result: ["a/b/c.txt", "/b", "b.txt", "a", ["a/b.tar", ".gz"], "a/c", "../b", [".bashrc", ""]]
---
# TOML, Unicode, characters
import string
import tomllib
import unicodedata

def t() -> Any:
    """Read."""
    try:
        tomllib.loads("a = ")
    except tomllib.TOMLDecodeError as e:
        print("bad" if "Invalid value" in str(e) else e)
    return [tomllib.loads('a = 1\n[b]\nc = [true, "x"]'), unicodedata.normalize("NFKD", "é").encode("ascii", "ignore").decode(), unicodedata.name("é"), unicodedata.category("A"), string.ascii_lowercase[:3], string.digits, string.capwords("ab cd"), ord("a"), chr(8364)]
# prints: "bad"
# result: [{"a": 1, "b": {"c": [True, "x"]}}, "e", "LATIN SMALL LETTER E WITH ACUTE", "Lu", "abc", "0123456789", "Ab Cd", 97, "€"]
---
# names imported from a module, and under other names
import json as j
from datetime import datetime as dt, timezone
from math import pi as circle, sqrt

def t() -> Any:
    """Import."""
    return [j.dumps([]), dt(2024, 1, 1, tzinfo=timezone.utc).isoformat(), round(circle, 2), sqrt(9)]
# result: ["[]", "2024-01-01T00:00:00+00:00", 3.14, 3.0]
---
# functions of modules as callbacks
import json
import math
from posixpath import basename

def t() -> Any:
    """Map."""
    return [list(map(json.loads, ["1", "[]"])), sorted([2.5, 1.2], key=math.floor), list(map(basename, ["a/b"])), max(["a/zz", "b/c"], key=basename)]
# result: [[1, []], [1.2, 2.5], ["b"], "a/zz"]
---
# methods as callbacks
def t() -> Any:
    """Map."""
    counts = {"a": 2, "b": 3}
    return [list(map(str.upper, "ab")), sorted(counts, key=counts.get, reverse=True), list(filter(str.isdigit, "a1b2")), list(map(" x ".join, ["ab"])), list(map(counts.get, "az"))]
# result: [["A", "B"], ["b", "a"], ["1", "2"], ["a x b"], [2, None]]
---
# sqrt of text
import math

def t(text: Any) -> Any:
    """Fail."""
    return math.sqrt(text)  # raises: TypeError "must be real number, not str"
# arguments: {"text": "4"}
---
# annotations, their imports and aliases have no effect
"""Types."""
from __future__ import annotations
import typing, math
from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from re import Match, Pattern, compile
from typing import Any, Dict, List, Optional, TypedDict, Union

class Row(TypedDict):
    name: str

Json = Dict[str, Any]
Rows: typing.TypeAlias = List[Row]
Number = Union[int, float] | None

PATTERN: Pattern[str] = compile("[a-z]+")

def _word(found: Optional[Match[str]]) -> str | None:
    return found.group() if found else None

def _half(x: Fraction, day: date, more: Iterable[str] = ()) -> Number:
    return float(x / 2) + day.year

def t(json: Json) -> Rows:
    """Count."""
    whole: Number = math.floor(_half(Fraction(3), date(2024, 1, 1)))
    return [Row(name=_word(PATTERN.search(key))) for key in json] + [whole]
# arguments: {"json": {"1ab2": 1, "3": 2}}
# result: [{"name": "ab"}, {"name": None}, 2025]
---
# groupby and repeat
from itertools import groupby, repeat

def t() -> Any:
    """Group."""
    rows = [{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}, {"k": "a", "n": 4}]
    found = []
    for key, group in groupby(rows, key=lambda row: row["k"]):
        first = next(group)
        group = [row["n"] for row in group]
        found.append([key, first["n"], group])
    skipped = [key for key, group in groupby("aabb") if key == "b" or list(group) == ["a"]]
    late = [list(inner) for key, group in groupby("aab") for same, inner in groupby(group)]
    return [found, skipped, late, {key: len(list(g)) for key, g in groupby(sorted("banana"))}, list(repeat(None, 2)), list(zip("abc", repeat(0, 2))), list(repeat(1, -1))]
# result: [[["a", 1, [2]], ["b", 3, []], ["a", 4, []]], ["b"], [["a", "a"], ["b"]], {"a": 3, "b": 1, "n": 2}, [None, None], [["a", 0], ["b", 0]], []]
---
# time zones
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError) as error:
        return f"{isinstance(error, KeyError)} {error}"

def t() -> Any:
    """Convert."""
    a = datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc)
    berlin = ZoneInfo("Europe/Berlin")
    twice = datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
    return [
        a.astimezone(berlin).isoformat(), (a + timedelta(hours=1)).astimezone(berlin).isoformat(), twice.tzname(), twice.replace(fold=1).dst().total_seconds(),
        str(berlin), repr(ZoneInfo("Asia/Kolkata")), berlin == ZoneInfo("Europe/Berlin"), f"{twice:%Z %z}", twice.utcoffset().total_seconds(),
        [_zone(n) for n in ["../../etc/passwd", "/etc/localtime", "Europe/../UTC", "Europe/", "", "No/Where", "UTC"]],
    ]
# result: ["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", "CEST", 0.0, "Europe/Berlin", "zoneinfo.ZoneInfo(key='Asia/Kolkata')", True, "CEST +0200", 7200.0, ["False ZoneInfo keys must refer to subdirectories of TZPATH, got: ../../etc/passwd", "False ZoneInfo keys may not be absolute paths, got: /etc/localtime", "False ZoneInfo keys must be normalized relative paths, got: Europe/../UTC", "False ZoneInfo keys must be normalized relative paths, got: Europe/", "False ZoneInfo keys must be normalized relative paths, got: ", "True 'No time zone found with key No/Where'", "UTC"]]
---
# calendar and IP addresses
import calendar
import ipaddress

def _kind(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        return str(error)
    return f"{address.version} {address.is_private} {address.compressed} {address.reverse_pointer}"

def t() -> Any:
    """Look."""
    net = ipaddress.ip_network("192.168.0.0/29")
    hosts = [str(host) for host in net.hosts()]
    return [
        calendar.monthrange(2023, 2)[1], calendar.month_name[3], calendar.isleap(1900), calendar.monthcalendar(2024, 2)[0], calendar.month(2024, 2),
        [calendar.weekday(2024, 1, 2), calendar.day_abbr[calendar.weekday(2024, 1, 1)], list(calendar.month_abbr)[:3]],
        hosts, net.num_addresses, str(net.broadcast_address), [str(n) for n in net.subnets(new_prefix=30)], str(net.supernet(prefixlen_diff=5)),
        ipaddress.ip_address("192.168.0.3") in net, net.overlaps(ipaddress.ip_network("192.168.0.4/30")), _kind("::1"), _kind("1.2.3.400"), _kind("10.0.0.1"),
        str(ipaddress.ip_interface("10.0.0.7/8").network), [str(n) for n in net.address_exclude(ipaddress.ip_network("192.168.0.0/30"))],
        sorted(ipaddress.ip_address(n) for n in (3, 1, 2))[0] < ipaddress.ip_address(9),
    ]
# result: [28, "March", False, [0, 0, 0, 1, 2, 3, 4], "   February 2024\nMo Tu We Th Fr Sa Su\n          1  2  3  4\n 5  6  7  8  9 10 11\n12 13 14 15 16 17 18\n19 20 21 22 23 24 25\n26 27 28 29\n", [1, "Mon", ["", "Jan", "Feb"]], ["192.168.0.1", "192.168.0.2", "192.168.0.3", "192.168.0.4", "192.168.0.5", "192.168.0.6"], 8, "192.168.0.7", ["192.168.0.0/30", "192.168.0.4/30"], "192.168.0.0/24", True, True, "6 True ::1 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa", "'1.2.3.400' does not appear to be an IPv4 or IPv6 address", "4 True 10.0.0.1 1.0.0.10.in-addr.arpa", "10.0.0.0/8", ["192.168.0.4/30"], True]
---
# literal_eval
import ast

def _read(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError) as error:
        return f"{isinstance(error, SyntaxError)} {error}".partition(" at 0x")[0].removesuffix(">")

def t() -> Any:
    """Read."""
    texts = ["{'a': [1, -2.5, None, True], 'b': ('x',)}", "  'x' 'y'", "__import__('os')", "1 +", "[1] * 9", "(" * 300, "x", "{[]: 1}", "1 + 2"]
    return [_read(text) for text in texts]
# result: [{"a": [1, -2.5, None, True], "b": ["x"]}, "xy", "False malformed node or string on line 1: <ast.Call object", "True invalid syntax (<unknown>, line 1)", "False malformed node or string on line 1: <ast.BinOp object", "True too many nested parentheses (<unknown>, line 1)", "False malformed node or string on line 1: <ast.Name object", "False unhashable type: 'list'", "False malformed node or string on line 1: <ast.BinOp object"]
---
# operator's functions as callbacks
import operator
from functools import reduce
from itertools import accumulate, groupby, starmap
from operator import itemgetter, mul

def t(rows: list[dict]) -> Any:
    """Sort."""
    return [
        [row["n"] for row in sorted(rows, key=itemgetter("k", "n"))], reduce(mul, range(1, 6)), list(accumulate([1, 2, 3], operator.add)),
        list(map(operator.itemgetter(0), ["ab", "cd"])), list(starmap(operator.pow, [(2, 3)])), max(rows, key=itemgetter("n"))["k"],
        {k: len(list(g)) for k, g in groupby(sorted(rows, key=itemgetter("k")), key=itemgetter("k"))}, operator.truediv(1, 4), operator.contains("abc", "b"),
        list(map(operator.sub, [5, 6], [1, 2])),
    ]
# arguments: {"rows": [{"k": "b", "n": 1}, {"k": "a", "n": 3}, {"k": "a", "n": 2}]}
# result: [[2, 3, 1], 120, [1, 3, 6], ["a", "c"], [8], "a", {"a": 2, "b": 1}, 0.25, True, [4, 4]]
---
# a missing item in a callback
from operator import itemgetter

def t(rows: list[dict]) -> Any:
    """Sort."""
    return sorted(rows, key=itemgetter("x"))  # raises: KeyError "'x'"
# arguments: {"rows": [{}]}
---
# objects whose class is not Python's own behave as Python's
import copy
import csv
import hashlib
from io import StringIO
from string import Template

def t() -> Any:
    """Use."""
    a = hashlib.sha256(b"a")
    b = a.copy()
    b.update(b"b")
    stream = StringIO("first\n")
    stream.seek(0, 2)
    rows = csv.writer(stream)
    rows.writerows([[1, "a,b"], [2, ""]])
    names = [type(x).__name__ for x in (a, rows, stream, Template("$x"))]
    try:
        copy.copy(a)
    except TypeError as e:
        names.append(str(e))
    return [b.hexdigest() == hashlib.sha256(b"ab").hexdigest(), a.hexdigest() == b.hexdigest(), stream.getvalue(), names, str(a)[:15]]
# result: [True, False, 'first\n1,"a,b"\r\n2,\r\n', ["HASH", "writer", "StringIO", "Template", "cannot pickle '_hashlib.HASH' object"], "<sha256 _hashli"]
