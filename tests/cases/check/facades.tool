# an unavailable module, and its replacement
import os  # error: 8 [unknown-module] "the module 'os' can't be imported"
import glob  # error: 8 [unknown-module] "the module 'glob' can't be imported"
import time  # error: 8 [unknown-module] "the module 'time' can't be imported"
import random  # error: 8 [unknown-module] "the module 'random' can't be imported"
import subprocess  # error: 8 [unknown-module] "the module 'subprocess' can't be imported"
import requests  # error: 8 [unknown-module] "the module 'requests' can't be imported"

def t() -> int:
    """Import."""
    return 1
---
# submodules and names of unavailable modules
import os.path  # error: 8 [unknown-module] "the module 'os.path' can't be imported"
from os import path  # error: 1 [unknown-module] "the module 'os' can't be imported"
from pathlib import Path  # error: 1 [unknown-module] "the module 'pathlib' can't be imported"
import urllib.request  # error: 8 [unknown-module] "the module 'urllib.request' can't be imported"
import concurrent.futures  # error: 8 [unknown-module] "the module 'concurrent.futures' can't be imported"
from dataclasses import dataclass  # error: 1 [unknown-module] "the module 'dataclasses' can't be imported"

def t() -> int:
    """Import."""
    return 1
---
# an unknown module
import jsn  # error: 8 [unknown-module] "the module 'jsn' can't be imported; did you mean 'json'?"
import numpy as np  # error: 8 [unknown-module] "the module 'numpy' can't be imported"

def t() -> int:
    """Import."""
    return 1
---
# names of typing, collections.abc and __future__ that have no effect
"""Imports for annotations."""
from __future__ import annotations
from collections.abc import Iterable, Mapping
import typing
from typing import Any, Dict, List as L, Optional, Tuple, TypedDict, Union

class Row(TypedDict, total=False):
    name: Optional[str]

class Other(typing.TypedDict):
    row: typing.List[Row]

def _f(xs: Iterable[str], m: Mapping[str, Any]) -> Union[str, None]:
    return None

def t(x: Optional[Any], y: L[str], z: Tuple[int, ...], u: Union[int, str] = 1, w: typing.Optional[Other] = None) -> Dict[str, int]:
    """Import."""
    return {}
---
# other names of those modules
from __future__ import division  # error: 24 [unknown-import] "__future__ has no 'division' here"
from collections.abc import Callable, Iterator
# error: 29 [unknown-import] "collections.abc has no 'Callable' here"
# hint: "functions are not values; call the helper by its name"
# error: 39 [unknown-import] "collections.abc has no 'Iterator' here"
from typing import Optionl, cast, get_type_hints
# error: 20 [unknown-import] "typing has no 'Optionl' here; did you mean 'Optional'?"
# error: 29 [unknown-import] "typing has no 'cast' here"
# error: 35 [unknown-import] "typing has no 'get_type_hints' here"
import collections.abc  # error: 8 [unknown-module] "the module 'collections.abc' can't be imported"

def t() -> int:
    """Import."""
    return 1
---
# from __future__ comes first
import json
from __future__ import annotations  # error: [syntax] "Python refuses this: from __future__ imports must occur at the beginning of the file"

def t(x: int) -> str:
    """Import."""
    return json.dumps(x)
---
# a fix adds an import after from __future__
"""About it."""
from __future__ import annotations

def t(x: int) -> str:
    """Import."""
    return json.dumps(x)  # error: 12 [unknown-name] "the module 'json' is used but not imported"
---
# names of types outside annotations
import typing
from re import Match
from typing import List, Optional

def t(x: Any) -> Any:
    """Use."""
    a = List(x)  # error: 9 [outside-name] "'List' is allowed only in annotations"
    b = typing.get_type_hints(x)  # error: 9 [outside-name] "'typing' is allowed only in annotations"
    try:
        c = isinstance(x, Match)  # error: 27 [outside-name] "'Match' is allowed only in annotations"
    except Optional:  # error: 12 [outside-name] "'Optional' is allowed only in annotations"
        c = None
    match x:
        case List():  # error: 14 [pattern] "a class pattern must name a built-in type"
            pass
    return [a, b, c, Optional[a]]  # error: 22 [outside-name] "'Optional' is allowed only in annotations"
---
# a name that a module doesn't offer
from json import dump  # error: 18 [unknown-import] "json has no 'dump' here"
from math import sqroot  # error: 18 [unknown-import] "math has no 'sqroot' here; did you mean 'sqrt'?"
from itertools import count, cycle, tee
# error: 23 [unknown-import] "itertools has no 'count' here"
# error: 30 [unknown-import] "itertools has no 'cycle' here"
# error: 37 [unknown-import] "itertools has no 'tee' here"
from uuid import uuid4  # error: 18 [unknown-import] "uuid has no 'uuid4' here"
from functools import partial, lru_cache
# error: 23 [unknown-import] "functools has no 'partial' here"
# error: 32 [unknown-import] "functools has no 'lru_cache' here"
from collections import namedtuple  # error: 25 [unknown-import] "collections has no 'namedtuple' here"

def t() -> int:
    """Import."""
    return 1
---
# a function that is not in the language
import json
import math
import re

def t(x: str) -> Any:
    """Call."""
    return [json.load(x), math.sqroot(2), re.purge(), json.codecs.builtins.open(x), math.__loader__]
# error: 18 [unknown-attribute] "json has no 'load' here"
# error: 32 [unknown-attribute] "math has no 'sqroot' here; did you mean 'sqrt'?"
# error: 46 [unknown-attribute] "re has no 'purge' here"
# error: 60 [unknown-attribute] "json has no 'codecs' here"
# error: 90 [unknown-attribute] "math has no '__loader__' here"
---
# infinite iterators
import itertools

def t(x: str) -> Any:
    """Call."""
    return [next(itertools.count()), list(itertools.repeat(x)), itertools.cycle(x)]
# error: 28 [unknown-attribute] "itertools has no 'count' here"
# error: 43 [arguments] "repeat needs a count: it would never end"
# error: 75 [unknown-attribute] "itertools has no 'cycle' here"
---
# imports under another name
import json as j
import urllib.parse as up
import urllib.parse
from urllib import parse
from os import path as p  # error: 1 [unknown-module] "the module 'os' can't be imported"
from urllib.parse import quote as q, urlparse
from datetime import datetime as dt, timezone

def t(x: str) -> Any:
    """Call."""
    a = [j.dumps(x), up.quote(x), urllib.parse.urljoin(x, x), parse.unquote(x), q(x), urlparse(x).netloc]
    return [a, dt.fromisoformat(x).astimezone(timezone.utc).isoformat()]
---
# several modules in one import statement
import json, re, math

def t(x: str) -> Any:
    """Call."""
    return [json.loads(x), re.findall(r"\d", x), math.floor(1.5)]
---
# re: patterns are compiled as constants
import re
from re import IGNORECASE, compile as compiled

A = re.compile(r"(\d+)-(\d+)", re.MULTILINE | re.X)
B = compiled("a", IGNORECASE)

def t(x: str) -> Any:
    """Call."""
    m = A.search(x)
    return [m.groups() if m else None, B.sub("b", x), re.split(r",\s*", x, maxsplit=1), A.pattern]
---
# errors of modules can be caught
import json
import re
from json import JSONDecodeError

def t(x: str) -> Any:
    """Parse."""
    try:
        return json.loads(x)
    except JSONDecodeError as e:
        print(e)
    try:
        return re.findall(x, x)
    except (re.error, json.JSONDecodeError) as e:
        return str(e)
---
# the attributes of a module's error
import json

def t(x: str) -> Any:
    """Parse."""
    try:
        return json.loads(x)
    except json.JSONDecodeError as e:
        return [e.msg, e.lineno, e.colno, e.pos, e.doc]
# error: 19 [unknown-attribute] "no attribute 'msg' in the language"
# error: 26 [unknown-attribute] "no attribute 'lineno' in the language"
# error: 36 [unknown-attribute] "no attribute 'colno' in the language"
# error: 52 [unknown-attribute] "no attribute 'doc' in the language"
---
# datetime in both spellings
import datetime
from datetime import timedelta, UTC

def t(x: str) -> Any:
    """Parse."""
    a = datetime.datetime.strptime(x, "%Y-%m-%d")
    b = datetime.date.fromisoformat(x)
    c = datetime.datetime(2024, 1, 2, tzinfo=UTC)
    d = datetime.datetime.combine(b, datetime.time(1, 2))
    return [a.isoformat(), (b - timedelta(days=1)).isoformat(), c.timestamp(), d.strftime("%H:%M"), f"{d:%Y}"]
---
# datetime used as if it were its class
import datetime

def t(x: str) -> Any:
    """Parse."""
    return datetime.fromisoformat(x)  # error: 21 [unknown-attribute] "datetime has no 'fromisoformat' here; did you mean 'datetime.fromisoformat'?"
---
# csv reading and writing
import csv
import io

def t(text: str) -> Any:
    """Copy."""
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=["a", "b"])
    writer.writeheader()
    writer.writerows(rows)
    plain = csv.writer(out, delimiter=";")
    plain.writerow([1, 2])
    return out.getvalue()
---
# csv on an open file
import csv

def t(path: str) -> Any:
    """Copy."""
    return list(csv.reader(open(path)))  # error: 28 [outside-name] "'open' is not in the language"
---
# hashlib, base64, textwrap, statistics, string, html, heapq, bisect
import base64
import bisect
import hashlib
import heapq
import html
import statistics
import string
import textwrap

def t(x: str, xs: list) -> Any:
    """Call."""
    heap = list(xs)
    heapq.heapify(heap)
    heapq.heappush(heap, 1)
    return [
        hashlib.sha256(x.encode()).hexdigest(),
        base64.b64encode(x.encode("utf-8")).decode(),
        textwrap.dedent(x),
        textwrap.shorten(x, width=20, placeholder="…"),
        statistics.mean(xs),
        string.ascii_lowercase,
        html.escape(x, quote=False),
        heapq.nlargest(2, xs, key=abs),
        bisect.bisect_left(xs, 3),
        heap,
    ]
---
# decimal, fractions, unicodedata, uuid, tomllib, difflib, shlex, posixpath, copy
import copy
import difflib
import shlex
import tomllib
import unicodedata
import uuid
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from posixpath import join, splitext

def t(x: str, xs: list) -> Any:
    """Call."""
    return [
        str(Decimal(x).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
        str(Fraction(1, 3) + Fraction("1/6")),
        unicodedata.normalize("NFC", x),
        str(uuid.uuid5(uuid.NAMESPACE_URL, x)),
        tomllib.loads(x),
        "\n".join(difflib.unified_diff(xs, xs, fromfile="a", tofile="b", lineterm="")),
        shlex.split(x),
        splitext(join("a", x))[1],
        copy.deepcopy(xs),
    ]
---
# deepcopy with a second argument, which it fills with addresses
import copy

def t(xs: list) -> Any:
    """Copy."""
    memo: dict = {}
    copy.deepcopy(xs, memo)  # error: 5 [arguments] "deepcopy takes one argument here"
    return list(memo)
---
# functools.reduce with a lambda
from functools import reduce

def t(xs: list) -> Any:
    """Sum."""
    return reduce(lambda a, b: a + b, xs, 0)
---
# a used module that is imported under another name
import json as j

def t(x: dict) -> str:
    """Dump."""
    return json.dumps(x)  # error: 12 [unknown-name] "the module 'json' is used but not imported"
---
# paths to the real modules behind the new façades
import ast
import calendar
import ipaddress
import zoneinfo

def t(text: str) -> Any:
    """Look."""
    a = ast.parse(text)  # error: 13 [unknown-attribute] "ast has no 'parse' here"
    b = ast.sys  # error: 13 [unknown-attribute] "ast has no 'sys' here"
    c = calendar.setfirstweekday(1)  # error: 18 [unknown-attribute] "calendar has no 'setfirstweekday' here"
    d = zoneinfo.ZoneInfo.from_file(text)  # error: 27 [unknown-attribute] "zoneinfo has no 'ZoneInfo.from_file' here"
    e = zoneinfo.reset_tzpath([text])  # error: 18 [unknown-attribute] "zoneinfo has no 'reset_tzpath' here"
    f = zoneinfo.available_timezones()  # error: 18 [unknown-attribute] "zoneinfo has no 'available_timezones' here"
    g = calendar.month.__self__  # error: 24 [unknown-attribute] "calendar has no 'month.__self__' here"
    h = ipaddress.functools  # error: 19 [unknown-attribute] "ipaddress has no 'functools' here"
    i = ipaddress.ip_network(text).hosts()  # error: 9 [lazy-value] "hosts(…) is lazy and must be consumed where it is made"
    return [a, b, c, d, e, f, g, h, i]
