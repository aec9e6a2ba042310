# methods of text
def t() -> Any:
    """Write."""
    s = "  Hello, World  "
    return [
        s.strip(), s.strip().lower(), s.strip().upper(), "a,b,,c".split(","), " a  b ".split(), "a-b-c".rsplit("-", 1),
        "-".join(["x", "y"]), "hello".replace("l", "L", 1), "abc".find("z"), "abab".rfind("ab"), "aXbX".count("X"),
        "x".ljust(3, ".") + "x".rjust(3) + "x".center(3, "*"), "7".zfill(3), "ab cd".title(), "ab".capitalize(),
        "a=b=c".partition("="), "a=b=c".rpartition("="), "prefix-x".removeprefix("prefix-"), "x.py".removesuffix(".py"),
    ]
# result: ["Hello, World", "hello, world", "HELLO, WORLD", ["a", "b", "", "c"], ["a", "b"], ["a-b", "c"], "x-y", "heLlo", -1, 2, 2, "x..  x*x*", "007", "Ab Cd", "Ab", ["a", "=", "b=c"], ["a=b", "=", "c"], "x", "x"]
---
# predicates of text
def t() -> Any:
    """Write."""
    return ["12".isdigit(), "".isdigit(), "²".isdigit(), "²".isdecimal(), "aB".isalpha(), " ".isspace(), "ab".startswith(("x", "a")), "a.py".endswith(".py"), "ab" in "cabd", "" in "x", "Ab".istitle(), "x_1".isidentifier()]
# result: [True, False, True, False, True, True, True, True, True, True, True, True]
---
# strip takes a set of characters, not a prefix
def t() -> Any:
    """Write."""
    return ["xxabcxx".strip("x"), "www.example.com".lstrip("w."), "file.txt".rstrip(".txt"), "aaa".strip("a")]
# result: ["abc", "example.com", "file", ""]
---
# splitlines and split
def t() -> Any:
    """Write."""
    return ["a\nb\r\nc\n".splitlines(), "a\nb\n".split("\n"), "".split(), "".split(","), "".splitlines(), "a\x0bb\u2028c".splitlines(), "a\nb".splitlines(True)]
# result: [["a", "b", "c"], ["a", "b", ""], [], [""], [], ["a", "b", "c"], ["a\n", "b"]]
---
# indexing and slicing
def t() -> Any:
    """Write."""
    s = "abcdef"
    return [s[0], s[-1], s[1:3], s[:-2], s[::2], s[::-1], s[10:], s[-3:], s[4:1:-1], s[slice(1, 3)]]
# result: ["a", "f", "bc", "abcd", "ace", "fedcba", "", "def", "edc", "bc"]
---
# characters, not bytes
def t() -> Any:
    """Write."""
    s = "né🙂"
    return [len(s), s[-1], len(s.encode()), s.encode("utf-8").decode("utf-8") == s, s.upper(), "ß".upper(), "ß".casefold(), "İ".lower() == "i̇", s[::-1]]
# result: [3, "🙂", 7, True, "NÉ🙂", "SS", "ss", True, "🙂én"]
---
# repr, str and ascii
def t() -> Any:
    """Write."""
    return [repr("it's"), repr('a"b\n'), str([1, "a", None, True]), repr((1,)), str({"a": 1.0}), ascii("é"), repr(b"x\xff"), f"{'a'!r}", f"{'é'!a}", f"{'x'!s:>3}"]
# result: ['"it\'s"', "'a\"b\\n'", "[1, 'a', None, True]", "(1,)", "{'a': 1.0}", "'\\xe9'", "b'x\\xff'", "'a'", "'\\xe9'", "  x"]
---
# f-strings
def t() -> Any:
    """Write."""
    w, name, xs = 6, "ab", [1, 2]
    return [f"{name:>{w}}", f"{name:*^{w}}", f"{{{name}}}", f"{xs[0] + xs[1]}", f"{name}" "x" f"{1}", f"{'n': <3}|", f"{None} {True}", f"{name!r:>6}", rf"\d{w}", f"{3:{'0'}{w}}"]
# result: ["    ab", "**ab**", "{ab}", "3", "abx1", "n  |", "None True", "  'ab'", "\\d6", "000003"]
---
# a format that does not fit the value
def t() -> Any:
    """Write."""
    return f"{'text':d}"  # raises: ValueError "Unknown format code 'd' for object of type 'str'"
---
# formatting with the percent operator
def t() -> Any:
    """Write."""
    return ["%s is %d" % ("a", 3), "%5.2f|" % 1.5, "%-4s|" % "x", "%x" % 255, "100%%" % (), "%(k)s" % {"k": 1}]
# result: ["a is 3", " 1.50|", "x   |", "ff", "100%", "1"]
---
# comparison is by code point
def t() -> Any:
    """Write."""
    return [sorted(["b", "A", "a", "é", "Z", "10", "9"]), sorted(["b", "A"], key=str.lower), "a" < "b", "Z" < "a", "" < "a"]
# result: [["10", "9", "A", "Z", "a", "b", "é"], ["A", "b"], True, True, True]
---
# multiplication and concatenation
def t() -> Any:
    """Write."""
    return ["ab" * 2, "x" * 0, "x" * -1, "a" "b", "a" + str(1), 3 * [0], [[]] * 2]
# result: ["abab", "", "", "ab", "a1", [0, 0, 0], [[], []]]
---
# repeating a list repeats references
def t() -> Any:
    """Write."""
    grid = [[0] * 2] * 2
    grid[0][0] = 1
    other = [[0] * 2 for _ in range(2)]
    other[0][0] = 1
    return [grid, other]
# result: [[[1, 0], [1, 0]], [[1, 0], [0, 0]]]
---
# translate and maketrans
def t() -> Any:
    """Write."""
    return ["abc".translate(str.maketrans("ab", "xy", "c")), "a-b".translate(str.maketrans({"-": None, "a": "AA"}))]
# result: ["xy", "AAb"]
---
# bytes
def t() -> Any:
    """Write."""
    b = "é!".encode()
    return [list(b), b.hex(), b[0], b[:1].hex(), len(b), bytes([65, 66]).decode(), b"a" + b"b" == b"ab", "x".encode("utf-16-le").hex(), bytes.fromhex("6869").decode("ascii"), b"a\xff".decode("ascii", "replace")]
# result: [[195, 169, 33], "c3a921", 195, "c3", 3, "AB", True, "7800", "hi", "a\ufffd"]
---
# bytes can't leave the program
def t() -> Any:
    """Write."""
    found = []
    found.append(b"a")
    return found
# raises: not_json "the result holds a bytes at [0], which can't leave the program: decode it: value.decode(), or base64.b64encode(value).decode()"
---
# a lone surrogate can't leave the program
def t() -> Any:
    """Write."""
    return ["\ud800"]
# raises: not_json "the result holds text with a lone surrogate at [0], which can't leave the program: it is not valid Unicode"
---
# regular expressions
import re

def t() -> Any:
    """Write."""
    s = "a1 b22 c333"
    m = re.search(r"(?P<word>[a-z])(\d+)", s)
    return [
        re.findall(r"\d+", s), re.findall(r"([a-z])(\d+)", s), re.sub(r"\d", "#", s), re.sub(r"(\w)(\d+)", r"\2\1", s, count=1),
        re.sub(r"\d+", lambda x: str(int(x[0]) * 2), s), re.split(r"\s", s), m.group(), m.group("word"), m[2], m.groups(), m.groupdict(), m.span(2),
        re.match(r"b", s) is None, bool(re.fullmatch(r"[a-c\d ]+", s)), re.escape("a.b"), [x.start() for x in re.finditer("[bc]", s)],
        re.subn("1", "x", s), re.split("(,)", "a,b"), re.findall("(?i)A", s), re.compile("^b", re.M).findall("a\nb"),
    ]
# result: [["1", "22", "333"], [["a", "1"], ["b", "22"], ["c", "333"]], "a# b## c###", "1a b22 c333", "a2 b44 c666", ["a1", "b22", "c333"], "a1", "a", "1", ["a", "1"], {"word": "a"}, [1, 2], True, True, "a\\.b", [3, 7], ["ax b22 c333", 1], ["a", ",", "b"], ["a"], ["b"]]
---
# an invalid regular expression
import re

def t(pattern: str) -> Any:
    """Write."""
    try:
        return re.findall(pattern, "x")
    except re.error as e:
        return str(e)
# arguments: {"pattern": "("}
# result: "missing ), unterminated subpattern at position 0"
---
# wrapping
import textwrap

def t() -> Any:
    """Write."""
    return [textwrap.fill("a bb ccc dddd", width=6), textwrap.dedent("  a\n    b"), textwrap.indent("a\nb", "> "), textwrap.shorten("hello big world", width=11)]
# result: ["a bb\nccc\ndddd", "a\n  b", "> a\n> b", "hello [...]"]
---
# templates, quoting, escaping
import html
import shlex
import string
from urllib.parse import parse_qs, quote, unquote, urlencode, urljoin, urlparse

def t() -> Any:
    """Write."""
    u = urlparse("https://a.example:8080/x/y?q=1#f")
    return [
        string.Template("$a and ${b}").substitute(a=1, b="x"), html.escape("<a & 'b'>"), html.unescape("&lt;&eacute;"),
        shlex.split("a 'b c' d\\ e"), shlex.quote("a b"), quote("a b/é"), unquote("a%20b"), urlencode({"a": 1, "b": "x y"}),
        parse_qs("a=1&a=2&b="), urljoin("https://a.example/x/y", "../z"), [u.scheme, u.netloc, u.path, u.query, u.fragment, u.hostname, u.port],
    ]
# result: ["1 and x", "&lt;a &amp; &#x27;b&#x27;&gt;", "<é", ["a", "b c", "d e"], "'a b'", "a%20b/%C3%A9", "a b", "a=1&b=x+y", {"a": ["1", "2"]}, "https://a.example/z", ["https", "a.example:8080", "/x/y", "q=1", "f", "a.example", 8080]]
---
# the debugging form of f-strings
def t() -> Any:
    """Show."""
    x, w, d = "a\n", 7, {"k": 1.5}
    return [
        f"{x=}", f"{x = }", f"{ x  =!s}", f"{x=!a:>9}|", f"{w=:5}|", f"{w=:}", f"{w=:{w}}", f"a{x=}{w=}{{b}}{w}={w}",
        f"{d['k']=}", f"{w==7=}", f"{w<=7=}", f"{(w := 8)=}", f"{[y for y in 'ab']=}", f"{dict(a=1)=}", f"é{'ü'=}" "plain" f'{w=}',
        rf"{w=}\n", f"""{
w
=
}""", f"\n{w=}\x41", f"{ {1: 2}=}", f"{w>7=}", f"{'=' + x=}",
    ]
# result: ["x='a\\n'", "x = 'a\\n'", " x  =a\n", "x=    'a\\n'|", "w=    7|", "w=7", "w=      7", "ax='a\\n'w=7{b}7=7", "d['k']=1.5", "w==7=True", "w<=7=True", "(w := 8)=8", "[y for y in 'ab']=['a', 'b']", "dict(a=1)={'a': 1}", "é'ü'='ü'plainw=8", "w=8\\n", "\nw\n=\n8", "\nw=8A", " {1: 2}={1: 2}", "w>7=True", "'=' + x='=a\\n'"]
---
# format of a literal
import datetime

def t(a: str, n: int) -> Any:
    """Show."""
    day = datetime.date(2024, 5, 6)
    return [
        "{} has {:>4}|".format(a, n), "{1}{0}{1!r}".format(n, a), "{x:.2f}{{}}{y}".format(x=2.5, y=None), "{:{}}|{:>{w}}|".format(a, n, a, w=3),
        "{:%d.%m.%Y}".format(day), "{}-{}".format(*[1, 2]), "{k}".format(**{"k": [1]}), "a" "{}" "b".format(True), "{0:x} {0:#b} {0:,}".format(n * 1000),
    ]
# arguments: {"a": "ox", "n": 5}
# result: ["ox has    5|", "ox5'ox'", "2.50{}None", "ox   | ox|", "06.05.2024", "1-2", "[1]", "aTrueb", "1388 0b1001110001000 5,000"]
---
# a wrong format of a literal
def t(a: str) -> Any:
    """Show."""
    return "{:d}".format(a)  # raises: ValueError "Unknown format code 'd' for object of type 'str'"
# arguments: {"a": "ox"}
