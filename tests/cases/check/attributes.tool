# private attributes
def t(x: Any) -> Any:
    """Look."""
    return [x.__class__, x.__dict__, x._private, x.__init__()]
# error: 15 [private-attribute] "the attribute '__class__' is private"
# error: 28 [private-attribute] "the attribute '__dict__' is private"
# error: 40 [private-attribute] "the attribute '_private' is private"
# error: 52 [private-attribute] "the attribute '__init__' is private"
---
# attributes that programs used to escape from other sandboxes
def t(f: Any) -> Any:
    """Look."""
    return [f.gi_frame, f.f_globals, f.tb_frame, f.cr_frame, f.mro(), f.func_globals]
# error: 15 [unknown-attribute] "no attribute 'gi_frame' in the language"
# error: 27 [unknown-attribute] "no attribute 'f_globals' in the language"
# error: 40 [unknown-attribute] "no attribute 'tb_frame' in the language"
# error: 52 [unknown-attribute] "no attribute 'cr_frame' in the language"
# error: 64 [unknown-attribute] "no method 'mro' in the language"
# error: 73 [unknown-attribute] "no attribute 'func_globals' in the language"
---
# only a literal is formatted, and its fields only name arguments
def t(text: str, x: Any, xs: list, d: dict) -> Any:
    """Show."""
    good = ["{0}".format(x), "{} {:>{}} {{}}".format(x, text, 8), "{n!r:.2f}".format(n=x), "{}{}".format(*xs), "{a}".format(**d), format(x, ">8")]
    text.format(x=x)  # error: 10 [unknown-attribute] "no method 'format' in the language"
    text.format_map({})  # error: 10 [unknown-attribute] "no method 'format_map' in the language"
    f"{x}{{}}".format(x)  # error: 16 [unknown-attribute] "no method 'format' in the language"
    more = list(map("{}".format, xs))  # error: 26 [unknown-attribute] "no attribute 'format' in the language"
    "{0.real}".format(x)  # error: 16 [unknown-attribute] "this can't be formatted: the field {0.real} does not name an argument"
    "{a[b]}".format(a=x)  # error: 14 [unknown-attribute] "this can't be formatted: the field {a[b]} does not name an argument"
    "{:{0.real}}".format(x)  # error: 19 [unknown-attribute] "this can't be formatted: the field {0.real} does not name an argument"
    "{:{:{}}}".format(x, 1, 2)  # error: 16 [unknown-attribute] "this can't be formatted: a field inside of a field has no format of its own"
    "{} {0}".format(x)  # error: 14 [unknown-attribute] "this can't be formatted: either all fields have a number or none"
    "{!x}".format(x)  # error: 12 [unknown-attribute] "this can't be formatted: there is no conversion !x"
    "{".format(x)  # error: 9 [unknown-attribute] "this can't be formatted: Single '{' encountered in format string"
    "{} {}".format(x)  # error: 5 [arguments] "the text has a field for argument 2, which is not given"
    "{:{w}}".format(x)  # error: 5 [arguments] "the text has a field for argument 'w', which is not given"
    return good, more
---
# an unknown method gets the nearest name
def t(text: str) -> Any:
    """Show."""
    return text.uper()  # error: 17 [unknown-attribute] "no method 'uper' in the language; did you mean 'upper'?"
---
# methods of other languages
def t(text: str, xs: list) -> Any:
    """Show."""
    xs.push(1)  # error: 8 [unknown-attribute] "no method 'push' in the language"
    return [text.trim(), text.length, xs.contains(1), text.toUpperCase(), text.substring(1), xs.size()]
# error: 18 [unknown-attribute] "no method 'trim' in the language"
# error: 31 [unknown-attribute] "no attribute 'length' in the language"
# error: 42 [unknown-attribute] "no method 'contains' in the language"
# error: 60 [unknown-attribute] "no method 'toUpperCase' in the language"
# error: 80 [unknown-attribute] "no method 'substring' in the language"
# error: 97 [unknown-attribute] "'size' is not a method"
---
# a dict's key written as an attribute
def t(d: dict) -> Any:
    """Show."""
    return d.status  # error: 14 [unknown-attribute] "no attribute 'status' in the language"
---
# a tool's output is a dict, so it has no attributes
def t(url: str) -> Any:
    """Show."""
    answer = tools.http_request(url=url)
    return [answer.status_code, answer.text, answer.json()]
# error: 20 [unknown-attribute] "no attribute 'status_code' in the language"
# error: 40 [unknown-attribute] "no attribute 'text' in the language"
# error: 53 [unknown-attribute] "no method 'json' in the language"
---
# a method that is not called
def t(text: str) -> Any:
    """Show."""
    return text.strip  # error: 17 [method-value] "the method 'strip' is not called"
---
# an attribute that is called
def t(error: Any) -> Any:
    """Show."""
    return error.message()  # error: 18 [unknown-attribute] "'message' is not a method"
---
# the fields of ToolError
def t(path: str) -> Any:
    """Show."""
    try:
        return tools.read_file(path=path)
    except ToolError as e:
        return [e.code, e.message, e.retryable, e.tool, str(e), e.args]
---
# fields of Python's exceptions that are not in the language
def t(path: str) -> Any:
    """Show."""
    try:
        return tools.read_file(path=path)
    except ToolError as e:
        return [e.__traceback__, e.with_traceback(None), e.errno]
# error: 19 [private-attribute] "the attribute '__traceback__' is private"
# error: 36 [unknown-attribute] "no method 'with_traceback' in the language"
# error: 60 [unknown-attribute] "no attribute 'errno' in the language"
---
# attributes can't be assigned
def t(d: dict) -> Any:
    """Set."""
    d.x = 1  # error: 5 [attribute-assignment] "the attribute 'x' can't be assigned"
    d.x += 1  # error: 5 [attribute-assignment] "the attribute 'x' can't be assigned"
    for d.y in [1]:  # error: 9 [attribute-assignment] "the attribute 'y' can't be assigned"
        pass
    a, d.z = 1, 2  # error: 8 [attribute-assignment] "the attribute 'z' can't be assigned"
    b = [d.args for d.w in [1]]  # error: 21 [attribute-assignment] "the attribute 'w' can't be assigned"
    return [a, b]
---
# items of an attribute's value can be assigned
def t(d: Any) -> Any:
    """Set."""
    d.args[0] = 1
    return d
---
# del of an attribute
def t(d: Any) -> Any:
    """Set."""
    del d.args  # error: 9 [delete] "del removes items only"
    return d
---
# encodings are literals from a list
def t(text: str, name: str) -> Any:
    """Encode."""
    a = text.encode()
    b = text.encode("utf-8", "replace")
    c = text.encode(name)  # error: 21 [encoding] "an encoding must be a literal that the language knows"
    d = text.encode("idna")  # error: 21 [encoding] "an encoding must be a literal that the language knows"
    e = b.decode(encoding="latin-1")
    f = str(a, "utf-8")
    g = bytes(text, "ascii")
    h = bytes(text, encoding=name)  # error: 30 [encoding] "an encoding must be a literal that the language knows"
    return [c, d, e, f, g.hex(), h]
---
# close is not needed
def t(text: str) -> Any:
    """Close."""
    text.close()  # error: 10 [unknown-attribute] "no method 'close' in the language"
    return text
---
# dates have attributes
from datetime import date, datetime, timedelta

def t(text: str) -> Any:
    """Date."""
    d = datetime.fromisoformat(text)
    return [d.year, d.month, d.isoformat(), (d + timedelta(days=1)).date().isoformat(), date(2024, 1, 1).weekday()]
---
# the current time comes from a tool
from datetime import date, datetime
import datetime as dt

def t(text: str) -> Any:
    """Date."""
    return [datetime.now(), date.today(), dt.datetime.utcnow(), dt.datetime(2020, 1, 1).now()]
# error: 22 [unknown-attribute] "datetime has no 'datetime.now' here"
# error: 34 [unknown-attribute] "datetime has no 'date.today' here"
# error: 55 [unknown-attribute] "datetime has no 'datetime.utcnow' here"
# error: 89 [unknown-attribute] "no method 'now' in the language"
---
# attributes of a match
import re

def t(text: str) -> Any:
    """Match."""
    m = re.search(r"(?P<a>\w+)", text)
    return [m.group("a"), m["a"], m.start(), m.lastgroup, m.re, m.string] if m else None
# error: 61 [unknown-attribute] "no attribute 're' in the language"
---
# an encoding in unpacked arguments
import urllib.parse

def t(text: str, more: dict, name: str) -> Any:
    """Encode."""
    a = text.encode(**more)  # error: 21 [encoding] "an encoding must be a literal that the language knows"
    b = urllib.parse.parse_qs(text, encoding=name)  # error: 46 [encoding] "an encoding must be a literal that the language knows"
    c = urllib.parse.parse_qs(text, encoding="latin-1")
    return [len(a), b, c]
---
# methods of types: those that change nothing
def t(xs: list[str], d: dict) -> Any:
    """Compute."""
    list.sort(xs)  # error: 10 [unknown-attribute] "'list.sort' can't be used here"
    # hint: "call it on a value: value.sort(…)"
    dict.setdefault(d, "a", [])  # error: 10 [unknown-attribute] "'dict.setdefault' can't be used here"
    data = str.encode("a", "utf-8")  # error: 16 [unknown-attribute] "'str.encode' can't be used here"
    # error: 23 [encoding] "an encoding must be a literal that the language knows"
    odd = str.append("a", "b")  # error: 15 [unknown-attribute] "'str.append' can't be used here"
    case = list.upper("x")  # error: 17 [unknown-attribute] "'list.upper' can't be used here"
    return [str.join(",", xs), set.union(*map(set, xs)), dict.get(d, "a"), data, odd, case]
