# an unknown key of a tool's output gets the nearest one
def t(command: str) -> str:
    """Run."""
    return tools.bash(command=command)["outpt"]  # error: 40 [unknown-key] "there is no key 'outpt'; did you mean 'output'?"
---
# an unknown key without a similar one lists the keys
def t(command: str) -> Any:
    """Run."""
    done = tools.bash(command=command)
    return done["answer"]  # error: 17 [unknown-key] "there is no key 'answer'"
---
# an unknown key of the items of an output
def t(folder: str) -> Any:
    """List."""
    total = 0
    for entry in tools.list_directory(path=folder):
        if entry["type"] == "file":
            total += entry["size"]  # error: 28 [unknown-key] "there is no key 'size'"
    return total
---
# an unknown key in a comprehension, in a key function and in an f-string
def t(folder: str) -> Any:
    """List."""
    entries = tools.list_directory(path=folder)
    names = [e["pth"] for e in entries]  # error: 16 [unknown-key] "there is no key 'pth'; did you mean 'path'?"
    ordered = sorted(entries, key=lambda e: e["sice_bytes"])  # error: 47 [unknown-key] "there is no key 'sice_bytes'; did you mean 'size_bytes'?"
    return [names, ordered, f"{entries[0]['tipe']}"]  # error: 43 [unknown-key] "there is no key 'tipe'; did you mean 'type'?"
---
# an unknown key of an output inside an output
def t(word: str) -> Any:
    """Search."""
    for match in tools.search_text(pattern=word)["matches"]:
        print(match["lines"])  # error: 21 [unknown-key] "there is no key 'lines'; did you mean 'line'?"
    return word
---
# an unknown key through a helper
def _names(entries: list) -> list:
    return [entry["nmae"] for entry in entries]  # error: 19 [unknown-key] "there is no key 'nmae'"

def t(folder: str) -> Any:
    """List."""
    return _names(tools.list_directory(path=folder))
---
# an unknown key of what a helper returns
def _measure(text: str) -> dict:
    return {"lines": text.count("\n"), "words": len(text.split())}

def t(path: str) -> Any:
    """Count."""
    found = _measure(tools.read_file(path=path))
    return found["word"]  # error: 18 [unknown-key] "there is no key 'word'; did you mean 'words'?"
---
# an unknown key of a TypedDict
class Row(TypedDict):
    name: str
    size: int

def t(path: str) -> Any:
    """Make."""
    row = Row(name=path, size=1)
    return row["sise"]  # error: 16 [unknown-key] "there is no key 'sise'; did you mean 'size'?"
---
# an unknown key of the tool's own parameter
class Row(TypedDict):
    name: str
    size: NotRequired[int]

def t(rows: list[Row]) -> Any:
    """Read."""
    return [row["nam"] for row in rows if "size" in row and row["size"] > 1]  # error: 17 [unknown-key] "there is no key 'nam'; did you mean 'name'?"
---
# an unknown key of the answer of parallel
def t(paths: list[str]) -> Any:
    """Look."""
    infos = parallel(tools.file_info(path=path) for path in paths)
    return [info["sizes_bytes"] for info in infos]  # error: 18 [unknown-key] "there is no key 'sizes_bytes'; did you mean 'size_bytes'?"
---
# an unknown key after unpacking, zip and enumerate
def t(paths: list[str]) -> Any:
    """Look."""
    infos = [tools.file_info(path=path) for path in paths]
    for i, info in enumerate(infos):
        print(i, info["pathh"])  # error: 23 [unknown-key] "there is no key 'pathh'; did you mean 'path'?"
    for path, info in zip(paths, infos):
        print(path, info["typ"])  # error: 26 [unknown-key] "there is no key 'typ'; did you mean 'type'?"
    first, *others = infos
    return len(others)
---
# keys that a program adds
def t(folder: str) -> Any:
    """List."""
    entries = tools.list_directory(path=folder)
    for entry in entries:
        entry["name"] = entry["path"].upper()
    return [entry["name"] for entry in entries]
---
# keys that a helper adds
def _mark(entry: dict) -> None:
    entry["mark"] = True

def t(path: str) -> Any:
    """Look."""
    info = tools.file_info(path=path)
    _mark(info)
    return info["mark"]
---
# keys that are added through another list
def t(folder: str) -> Any:
    """List."""
    entries = tools.list_directory(path=folder)
    kept = []
    for entry in entries:
        kept.append(entry)
    for one in kept:
        one["mark"] = True
    return [entry["mark"] for entry in entries]
---
# keys that are added by update, setdefault and |=
def t(path: str) -> Any:
    """Look."""
    a, b, c = tools.file_info(path=path), tools.file_info(path=path), tools.file_info(path=path)
    a.update({"mark": 1})
    b.setdefault("mark", 1)
    c |= {"mark": 1}
    return [a["mark"], b["mark"], c["mark"]]
---
# a key that another branch could have
def t(path: str, own: bool) -> Any:
    """Look."""
    info = {"mark": 1} if own else tools.file_info(path=path)
    return info["mark"]
---
# get, in and a KeyError that is expected
def t(path: str) -> Any:
    """Look."""
    info = tools.file_info(path=path)
    try:
        size = info["mark"]
    except KeyError:
        size = info.get("mark", 0)
    return [size, "mark" in info]
---
# a dict with keys of its own may lack one
def t() -> Any:
    """Count."""
    counts = {"a": 1, "b": 2}
    return counts["zebra"]
---
# a dict from JSON can have any key
import json

def t(text: str, given: dict) -> Any:
    """Read."""
    return [json.loads(text)["a"], given["b"]]
---
# text and a number
def t(path: str) -> Any:
    """Show."""
    count = len(tools.read_file(path=path))
    return "characters: " + count  # error: 12 [operand-type] "'+' never works between str and int"
---
# text and a number that a loop counts
def t(words: list[str]) -> Any:
    """Show."""
    total = 0
    for word in words:
        total += len(word)
    return "total: " + total  # error: 12 [operand-type] "'+' never works between str and int"
---
# text and a parameter that is a number
def t(limit: int) -> Any:
    """Show."""
    return "limit: " + limit  # error: 12 [operand-type] "'+' never works between str and number"
---
# None in an operation
def t(text: str) -> Any:
    """Show."""
    found = None
    if text:
        return found + 1  # error: 16 [operand-type] "'+' never works between None and int"
    return found[0]  # error: 12 [operand-type] "None can't be indexed by int"
---
# what a method returns that changes its list
def t(words: list[str]) -> Any:
    """Sort."""
    ordered = words.sort()
    return ordered[0]  # error: 12 [operand-type] "None can't be indexed by int"
---
# the result of print and of a tool without one
def t(seconds: float) -> Any:
    """Wait."""
    done = tools.sleep(seconds=seconds)
    return done["ok"]  # error: 12 [operand-type] "None can't be indexed by str"
---
# comparing values that have no order
def t(text: str, limit: int) -> Any:
    """Compare."""
    return [text < limit, len(text) < None, 0 < limit < "9"]
# error: 13 [operand-type] "'<' never works between str and number"
# error: 27 [operand-type] "'<' never works between int and None"
# error: 45 [operand-type] "'<' never works between number and str"
---
# in, with a number
def t(text: str, limit: int) -> Any:
    """Compare."""
    return [text in limit, limit in text, text in text]
# error: 13 [operand-type] "'in' never works between str and number"
# error: 28 [operand-type] "'in' never works between number and str"
---
# a loop over a number
def t(limit: int) -> Any:
    """Loop."""
    for i in limit:  # error: 14 [operand-type] "number can't be iterated"
        print(i)
    return [x for x in len("abc")]  # error: 24 [operand-type] "int can't be iterated"
---
# an index of the wrong type
def t(words: list[str], text: str) -> Any:
    """Index."""
    return [words["first"], text["0"], len(words)[0], {1, 2}[0]]
# error: 13 [operand-type] "list can't be indexed by str"
# error: 29 [operand-type] "str can't be indexed by str"
# error: 40 [operand-type] "int can't be indexed by int"
# error: 55 [operand-type] "set can't be indexed by int"
---
# assigning to an item of a text
def t(text: str) -> Any:
    """Change."""
    text[0] = "a"  # error: 5 [operand-type] "items of str can't be assigned by int"
    return text
---
# deleting an item of a tuple
def t(text: str) -> Any:
    """Change."""
    pair = (text, text)
    del pair[0]  # error: 9 [operand-type] "items of tuple can't be deleted by int"
    return pair
---
# unpacking a number
def t(text: str) -> Any:
    """Unpack."""
    a, b = len(text)  # error: 5 [operand-type] "int can't be iterated"
    return [a, b]
---
# a list as a key
def t(words: list[str]) -> Any:
    """Map."""
    return {words: 1}  # error: 13 [operand-type] "list can't be a key or an item of a set"
---
# a sign before a text
def t(text: str) -> Any:
    """Negate."""
    return -text  # error: 12 [operand-type] "'-' never works on str"
---
# += with a text and a number
def t(text: str) -> Any:
    """Add."""
    text += 1  # error: 5 [operand-type] "'+' never works between str and int"
    return text
---
# += on a list takes any items, and + does not
def t(words: list[str]) -> Any:
    """Add."""
    words += ("a", "b")
    return words + ("c",)  # error: 12 [operand-type] "'+' never works between list and tuple"
---
# a type error that the program expects
def t(text: str) -> Any:
    """Try."""
    try:
        return text + 1
    except TypeError:
        return None
---
# a type error in a helper, which its caller expects
def _add(a: Any, b: Any) -> Any:
    return a + b

def t(text: str) -> Any:
    """Try."""
    try:
        return _add(text, 1)
    except Exception:
        return None
---
# a handler of another error
def t(text: str) -> Any:
    """Try."""
    try:
        return text + 1  # error: 16 [operand-type] "'+' never works between str and int"
    except ValueError:
        return None
---
# a method of another type
def t(text: str, words: list[str]) -> Any:
    """Use."""
    text.append("a")  # error: 10 [missing-attribute] "str has no method 'append'"
    return [words.split(","), text.items(), len(text).upper()]
# error: 19 [missing-attribute] "list has no method 'split'"
# error: 36 [missing-attribute] "str has no method 'items'"
# error: 55 [missing-attribute] "int has no method 'upper'"
---
# the hint lists the methods of the type
def t(yes: bool, text: str) -> Any:
    """Use."""
    print(yes.upper())  # error: 15 [missing-attribute] "bool has no method 'upper'"
    print(frozenset(text).add("b"))  # error: 27 [missing-attribute] "frozenset has no method 'add'"
    return (1, text).append(3) or range(3).pop()
# error: 22 [missing-attribute] "tuple has no method 'append'"
# hint: "its methods are count, index"
# error: 44 [missing-attribute] "range has no method 'pop'"
# hint: "its methods are count, index"
---
# a method of None
import re

def t(text: str) -> Any:
    """Match."""
    found = re.search("a", text)
    if found is None:
        return found.group()  # error: 22 [missing-attribute] "None has no method 'group'"
    return found.group()
---
# an attribute of a dict
def t(path: str) -> Any:
    """Look."""
    return tools.file_info(path=path).name  # error: 39 [missing-attribute] "dict has no attribute 'name'"
---
# built-ins with the wrong type
def t(text: str, limit: int) -> Any:
    """Call."""
    return [len(limit), abs(text), int([]), range(text), sum(limit), float(None), chr(text)]
# error: 13 [argument-type] "len never works on number"
# error: 25 [argument-type] "abs never works on str"
# error: 36 [argument-type] "int never works on list"
# error: 45 [argument-type] "range never works on str"
# error: 58 [argument-type] "sum never works on number"
# error: 70 [argument-type] "float never works on None"
# error: 83 [argument-type] "chr never works on str"
---
# functions of modules with the wrong type
import json
import math
import re

def t(path: str) -> Any:
    """Call."""
    info = tools.file_info(path=path)
    return [json.loads(info), math.sqrt(path), re.findall("a", info), json.dumps({1, 2})]
# error: 13 [argument-type] "json.loads never works on dict"
# error: 31 [argument-type] "math.sqrt never works on str"
# error: 48 [argument-type] "re.findall never works on str and dict"
# error: 71 [argument-type] "json.dumps never works on set"
---
# methods with the wrong type
def t(text: str, words: list[str]) -> Any:
    """Call."""
    return [text.split(1), ",".join(3), text.startswith(words), text.replace("a", None)]
# error: 24 [argument-type] "str.split never works on int"
# error: 37 [argument-type] "str.join never works on int"
# error: 57 [argument-type] "str.startswith never works on list"
# error: 78 [argument-type] "str.replace never works on str and None"
---
# arguments of a tool with the wrong type
def t(path: str, limit: int) -> Any:
    """Call."""
    info = tools.file_info(path=path)
    tools.write_file(path=path, content=info)  # error: 41 [argument-type] "write_file does not take this value: content: expected str, got dict"
    tools.sleep(seconds=path)  # error: 25 [argument-type] "sleep does not take this value: seconds: expected float, got str"
    return tools.read_file(path=limit)  # error: 33 [argument-type] "read_file does not take this value: path: expected str, got number"
---
# a constant that a tool does not take
FOLDER = "../notes"
METHOD = "put"

def t() -> Any:
    """Call."""
    tools.http_request(url="https://a.example/", method=METHOD)  # error: 57 [argument-type] "http_request does not take this value: method: "put" is not one of the choices; did you mean "PUT"?"
    return tools.list_directory(path=FOLDER)  # error: 38 [argument-type] "list_directory does not take this value: path: must not contain '..'; write the path from the workspace down"
---
# a result that never fits its annotation
def t(path: str) -> str:
    """Look."""
    if path == "-":
        return None  # error: 16 [result-type] "this is None, and the result must be str"
    return tools.file_info(path=path)  # error: 12 [result-type] "this is dict, and the result must be str"
---
# a result that lacks a key, or has one too many
class Row(TypedDict):
    name: str
    size: NotRequired[int]

def t(path: str) -> Row:
    """Make."""
    if path == "a":
        return {"size": 1}  # error: 16 [result-type] "this is dict, and the result must be {name: str, size?: int}"
    if path == "b":
        return {"name": path, "length": 1}  # error: 16 [result-type] "this is dict, and the result must be {name: str, size?: int}"
    if path == "c":
        return {"name": 1}  # error: 16 [result-type] "this is dict, and the result must be {name: str, size?: int}"
    return {"name": path}
---
# a result outside its choices
def t(path: str) -> Literal["yes", "no"]:
    """Decide."""
    return "maybe" if path else "never"  # error: 12 [result-type] "this is str, and the result must be Literal["yes", "no"]"
---
# a tool that never returns a value
def t(path: str) -> int:  # error: 5 [missing-return] "t never returns a value, and the result must be int"
    """Count."""
    print(len(path))
---
# results that can fit
class Row(TypedDict):
    name: str

def t(path: str, limit: int) -> Row | list[str] | float | None:
    """Make."""
    if limit == 1:
        return {"name": path}
    if limit == 2:
        return []
    if limit == 3:
        return limit
    if limit == 4:
        return tuple(path.split())
---
# an optional field can be missing, so it fits any optional field
class Found(TypedDict):
    size: NotRequired[int]

class Shown(TypedDict):
    size: NotRequired[str]

def t(found: Found) -> Shown:
    """Show."""
    return found
---
# a tool that only raises returns nothing
def t(path: str) -> str:
    """Refuse."""
    raise ToolError("not now")
---
# a name with several types
def t(path: str, own: bool) -> Any:
    """Mix."""
    value = "a"
    if own:
        value = 1
    for _ in range(3):
        print(value + 1)
        value = len(path)
    return value
---
# a name that each round of a loop gives another type
def t(words: list[str]) -> Any:
    """Mix."""
    last = None
    for word in words:
        if last is not None:
            print(last.upper(), last + "x")
        last = word
    return last
---
# what a test says about a name
def t(value: str | int | list[str] | None) -> Any:
    """Narrow."""
    if value is None:
        return value.upper()  # error: 22 [missing-attribute] "None has no method 'upper'"
    if isinstance(value, str):
        return value + 1  # error: 16 [operand-type] "'+' never works between str and int"
    if isinstance(value, list):
        return value.upper()  # error: 22 [missing-attribute] "list has no method 'upper'"
    return value + "a"  # error: 12 [operand-type] "'+' never works between number and str"
---
# what a test with and, or and not says
def t(value: str | None, other: str | None) -> Any:
    """Narrow."""
    if not value and other is None:
        return other.upper()  # error: 22 [missing-attribute] "None has no method 'upper'"
    if value is None or value.append(1):  # error: 31 [missing-attribute] "str has no method 'append'"
        return value.upper()
    return [value.upper(), value == "a" and value.append("b")]  # error: 51 [missing-attribute] "str has no method 'append'"
---
# what a comparison with constants says
def t(value: Literal["a", "b"] | None) -> Any:
    """Narrow."""
    if value in ("a", "b"):
        return value + 1  # error: 16 [operand-type] "'+' never works between str and int"
    return value + 1  # error: 12 [operand-type] "'+' never works between None and int"
---
# a float can equal a whole number
def t(count: int) -> Any:
    """Narrow."""
    half = count / 2
    if half == 1:
        return half.upper()  # error: 21 [missing-attribute] "float has no method 'upper'"
---
# a tuple can be of a class that has more attributes
from urllib.parse import urlsplit

def _host(value: Any) -> Any:
    return value.netloc if isinstance(value, tuple) else value

def t(url: str) -> Any:
    """Split."""
    return _host(urlsplit(url))
---
# an int can be a bool
def _yes(value: Any) -> Any:
    return value if isinstance(value, int) else False

def t(value: Any) -> bool:
    """Narrow."""
    if isinstance(value, int):
        return value
    return False
---
# True equals 1
def t(a: bool) -> Any:
    """Narrow."""
    if a == 1:
        return a + "x"  # error: 16 [operand-type] "'+' never works between bool and str"
---
# an optional field can be there, so it fits a field that must be there
class Found(TypedDict):
    size: NotRequired[int]

class Shown(TypedDict):
    size: int

def t(found: Found) -> Shown:
    """Show."""
    return found
---
# a dict can be of a class that has more methods
from collections import Counter

def _most(value: Any) -> Any:
    return value.most_common(1) if isinstance(value, dict) else value

def t(words: list[str]) -> Any:
    """Count."""
    return _most(Counter(words))
---
# what match says
def t(value: str | list[str] | None) -> Any:
    """Narrow."""
    match value:
        case None:
            return value.upper()  # error: 26 [missing-attribute] "None has no method 'upper'"
        case str():
            return value + 1  # error: 20 [operand-type] "'+' never works between str and int"
        case [first, *_]:
            return first + 1
    return value.upper()  # error: 18 [missing-attribute] "list has no method 'upper'"
---
# a value that can be something else after each test
def t(value: str | int | None) -> Any:
    """Narrow."""
    if value is not None:
        print(value + 1)
    if not isinstance(value, int):
        print(value.upper())
    return value
---
# code that no value reaches
def t(value: str) -> Any:
    """Narrow."""
    if value is None:
        return value + 1
    if isinstance(value, int):
        return value + 1
    return value
---
# annotations of helpers are not proof
def _double(value: int) -> int:
    return value + value

def t(text: str) -> Any:
    """Double."""
    count: int = _double(text)
    return count.upper()
---
# a helper that is called with several types
def _show(value: Any) -> str:
    return value + "!" if isinstance(value, str) else str(value)

def t(text: str) -> Any:
    """Show."""
    return [_show(text), _show(1), _show(None)]
---
# a recursive helper, and one that is a callback
def _depth(value: Any) -> int:
    return 1 + max((_depth(v) for v in value), default=0) if isinstance(value, list) else 0

def _size(value: Any) -> int:
    return len(value)

def t(values: list) -> Any:
    """Measure."""
    return [_depth(values), sorted(values, key=_size)]
---
# comprehension variables hide constants
row = "text"

def t(rows: list) -> Any:
    """Read."""
    return [row + 1 for row in rows]
---
# a walrus in a comprehension
def t(values: list[int]) -> Any:
    """Add."""
    total = ""
    return [total := value + (total or 0) for value in values]
---
# what a try assigns is not certain in its handlers
def t(text: str) -> Any:
    """Try."""
    value = "a"
    try:
        value = int(text)
        value = value + 1
    except ValueError as error:
        print(error.args)
        return value * 2
    finally:
        print(value)
    return value + 1
---
# methods of dicts return their content
def t(path: str) -> Any:
    """Read."""
    info = tools.file_info(path=path)
    for key, value in info.items():
        print(key + 1, value)  # error: 15 [operand-type] "'+' never works between str and int"
    return [info.get("path") + 1, list(info)[0] + 1, len(info.keys()), info.copy()["pth"]]
# error: 13 [operand-type] "'+' never works between str and int"
# error: 35 [operand-type] "'+' never works between str and int"
# error: 84 [unknown-key] "there is no key 'pth'; did you mean 'path'?"
---
# views of a dict have a length
def t(counts: dict[str, int]) -> Any:
    """Count."""
    return [len(counts.items()), sorted(counts.values())[0] + 1, counts.keys() & {"a"}]
---
# values that can't leave the program
import re

def t(path: str, text: str) -> Any:
    """Show."""
    tools.http_request(url=path, headers={1: text})  # error: 42 [not-json] "this dict has a key that is no text, and JSON has only text as keys"
    if path == "a":
        return set(text)  # error: 16 [not-json] "this is set, which can't leave the program"
    if path == "b":
        return {"a": {(1, 2): text}}  # error: 16 [not-json] "this holds a value that is not JSON"
    if path == "c":
        return (text, text.encode())  # error: 16 [not-json] "this holds a value that is not JSON"
    if path == "d":
        return re.compile("a") if text else range(3)  # error: 16 [not-json] "this is re.Pattern | range, which can't leave the program"
    if path == "e":
        return {i: c for i, c in enumerate(text)}  # warning: 16 [not-json] "the keys of this dict are no text, and JSON has only text as keys"
    if path == "f":
        return {len(c): c for c in text}  # warning: 16 [not-json] "the keys of this dict are no text, and JSON has only text as keys"
    changed = {1: 2}
    changed.clear()
    if path == "g":
        return changed
    return {c: 1 for c in text}
---
# a dict whose keys may be no text is a warning only
def t(n: int) -> Any:
    """Map."""
    if n > 3:
        return {i: i for i in range(n - 3)}  # warning: 16 [not-json] "the keys of this dict are no text, and JSON has only text as keys"
    return {i: i for i in range(n)}  # warning: 12 [not-json] "the keys of this dict are no text, and JSON has only text as keys"
