"""The names that programs may use: built-ins, façades, methods, attributes.

The tables follow the principle of default-deny: a name that is not in a table can't be used. Everything in the tables is pure,
deterministic, and harmless for every value that a program can create. The checker does not know types, so a method's name must be
safe on any value. The checker and the worker read these tables. The compiler's second gate deliberately has its own list.

Façade entries have a compact form: ``name`` is a function, ``name=`` a constant, ``Name!`` an exception, ``Name#`` a class. ``~``
marks a function that returns a lazy iterator, and ``@0`` is the position of a callback. The allowed keywords follow a ``:``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Builtin(NamedTuple):
    """A built-in function or type: its number of positional arguments, its keywords, and the position of a callback."""

    least: int
    most: int | None
    keywords: frozenset[str] = frozenset()
    lazy: bool = False
    callback: int | None = None
    pure: bool = True


def _b(
    least: int,
    most: int | None = None,
    keywords: str = "",
    *,
    lazy: bool = False,
    callback: int | None = None,
    pure: bool = True,
) -> Builtin:
    return Builtin(least, most, frozenset(keywords.split()), lazy, callback, pure)


BUILTINS: dict[str, Builtin] = {
    "abs": _b(1, 1),
    "all": _b(1, 1),
    "any": _b(1, 1),
    "ascii": _b(1, 1),
    "bin": _b(1, 1),
    "bool": _b(0, 1),
    "bytes": _b(0, 3, "encoding errors"),
    "chr": _b(1, 1),
    "dict": _b(0, 1, "*"),
    "divmod": _b(2, 2),
    "enumerate": _b(1, 2, "start", lazy=True),
    "filter": _b(2, 2, lazy=True, callback=0),
    "float": _b(0, 1),
    "format": _b(1, 2),
    "frozenset": _b(0, 1),
    "hex": _b(1, 1),
    "int": _b(0, 2, "base"),
    "isinstance": _b(2, 2),
    "iter": _b(1, 1, lazy=True),
    "len": _b(1, 1),
    "list": _b(0, 1),
    "map": _b(2, None, lazy=True, callback=0),
    "max": _b(1, None, "key default"),
    "min": _b(1, None, "key default"),
    "next": _b(1, 2, pure=False),
    "oct": _b(1, 1),
    "ord": _b(1, 1),
    "pow": _b(2, 3, "base exp mod"),
    "print": _b(0, None, "sep end", pure=False),
    "range": _b(1, 3),
    "repr": _b(1, 1),
    "reversed": _b(1, 1, lazy=True),
    "round": _b(1, 2, "number ndigits"),
    "set": _b(0, 1),
    "slice": _b(1, 3),
    "sorted": _b(1, 1, "key reverse"),
    "str": _b(0, 3, "object encoding errors"),
    "sum": _b(1, 2, "start"),
    "tuple": _b(0, 1),
    "zip": _b(0, None, "strict", lazy=True),
}

#: Class methods of built-in types, as ``type.name``.
TYPE_METHODS = frozenset({"dict.fromkeys", "str.maketrans", "bytes.fromhex", "int.from_bytes", "float.fromhex"})

#: The exceptions that a program may name, raise and catch. `ToolError` and the exceptions of façades are allowed, too.
EXCEPTIONS = frozenset(
    """ArithmeticError AssertionError Exception IndexError KeyError LookupError NotImplementedError OverflowError RuntimeError
    SyntaxError TypeError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
    AttributeError StopIteration""".split()
)

#: The names that the prelude defines. They cannot be rebound.
PRELUDE = frozenset({"tools", "tool", "example", "parallel", "ToolError"})

#: Names that may only be used in annotations.
TYPING = frozenset({"Any", "Literal", "Optional", "TypedDict", "Required", "NotRequired", "Union"})

#: The types that an annotation can name without an import.
PLAIN_TYPES = ("str", "int", "float", "bool", "list", "dict", "tuple", "set", "frozenset", "bytes", "Any")

#: For each module, the names that only annotations use, and the type that each of them means. Compilation removes their imports.
ANNOTATION_NAMES: dict[str, dict[str, str]] = {
    "__future__": {"annotations": ""},
    "collections.abc": {"Iterable": "list", "Mapping": "dict", "Sequence": "list"},
    "re": {"Match": "re.Match", "Pattern": "re.Pattern"},
    "typing": {
        **{name: name for name in TYPING},
        **{name: name.lower() for name in ("Dict", "FrozenSet", "List", "Set", "Tuple")},
        **{"Iterable": "list", "Mapping": "dict", "Sequence": "list"},
        **{"Match": "re.Match", "Pattern": "re.Pattern", "TypeAlias": "TypeAlias"},
    },
}


class Entry(NamedTuple):
    """An entry of a façade; `kind` is ``function``, ``constant``, ``exception`` or ``class``."""

    kind: str
    lazy: bool = False
    callback: int | None = None
    keywords: frozenset[str] = frozenset()


_FACADES: dict[str, str] = {
    "ast": "literal_eval",
    "base64": "b64encode b64decode urlsafe_b64encode urlsafe_b64decode standard_b64encode standard_b64decode"
    " b32encode b32decode b16encode b16decode b85encode b85decode",
    "bisect": "bisect:lo,hi,key bisect_left:lo,hi,key bisect_right:lo,hi,key insort:lo,hi,key"
    " insort_left:lo,hi,key insort_right:lo,hi,key",
    "calendar": "calendar:w,l,c,m isleap leapdays month:w,l monthcalendar monthrange timegm weekday IllegalMonthError!"
    " day_abbr= day_name= month_abbr= month_name= MONDAY= TUESDAY= WEDNESDAY= THURSDAY= FRIDAY= SATURDAY= SUNDAY=",
    "collections": "Counter# OrderedDict# defaultdict# deque#:maxlen",
    "copy": "copy deepcopy",
    "csv": "reader~:delimiter,quotechar,skipinitialspace,strict,quoting,doublequote,escapechar,lineterminator"
    " DictReader#~:fieldnames,restkey,restval,delimiter,quotechar,skipinitialspace,strict,quoting"
    " writer:delimiter,quotechar,quoting,lineterminator,doublequote,escapechar"
    " DictWriter#:fieldnames,restval,extrasaction,delimiter,quotechar,quoting,lineterminator"
    " QUOTE_ALL= QUOTE_MINIMAL= QUOTE_NONNUMERIC= QUOTE_NONE= Error!",
    "datetime": "date#:year,month,day time#:hour,minute,second,microsecond,tzinfo"
    " datetime#:year,month,day,hour,minute,second,microsecond,tzinfo"
    " timedelta#:days,seconds,microseconds,milliseconds,minutes,hours,weeks timezone# UTC= timezone.utc="
    " date.fromisoformat date.fromordinal date.fromisocalendar date.min= date.max="
    " time.fromisoformat time.min= time.max="
    " datetime.fromisoformat datetime.strptime datetime.fromordinal datetime.combine datetime.fromtimestamp:tz"
    " datetime.min= datetime.max= timedelta.min= timedelta.max=",
    "decimal": "Decimal# ROUND_HALF_UP= ROUND_HALF_EVEN= ROUND_HALF_DOWN= ROUND_UP= ROUND_DOWN= ROUND_CEILING="
    " ROUND_FLOOR= InvalidOperation! DivisionByZero!",
    "difflib": "SequenceMatcher#:a,b,autojunk unified_diff~:fromfile,tofile,fromfiledate,tofiledate,n,lineterm"
    " context_diff~:fromfile,tofile,n,lineterm ndiff~ get_close_matches:n,cutoff",
    "fractions": "Fraction#:numerator,denominator",
    "functools": "reduce@0",
    "hashlib": "md5:usedforsecurity sha1:usedforsecurity sha224 sha256 sha384 sha512 blake2b:digest_size"
    " blake2s:digest_size sha3_256 sha3_512",
    "heapq": "heappush heappop heapify heapreplace heappushpop merge~:key,reverse nlargest:key nsmallest:key",
    "html": "escape:quote unescape",
    "io": "StringIO#:initial_value,newline",
    "ipaddress": "IPv4Address# IPv4Interface# IPv4Network#:strict IPv6Address# IPv6Interface# IPv6Network#:strict ip_address"
    " ip_interface ip_network:strict collapse_addresses~ summarize_address_range~ AddressValueError! NetmaskValueError!",
    "itertools": "accumulate~@1:initial chain~ chain.from_iterable~ combinations~ combinations_with_replacement~"
    " compress~ dropwhile~@0 filterfalse~@0 groupby@1:key islice~ pairwise~ permutations~ product~:repeat repeat~:times"
    " starmap~@0 takewhile~@0 zip_longest~:fillvalue",
    "json": "dumps:skipkeys,ensure_ascii,check_circular,allow_nan,indent,separators,default,sort_keys loads"
    " JSONDecodeError!",
    "math": "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e= erf erfc exp"
    " exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf= isclose:rel_tol,abs_tol isfinite isinf"
    " isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan= nextafter perm pi= pow prod:start radians"
    " remainder sin sinh sqrt tan tanh tau= trunc ulp",
    "operator": "abs add and_ concat contains eq floordiv ge getitem gt index inv invert is_ is_not itemgetter le lshift lt"
    " mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
    "posixpath": "basename commonpath commonprefix dirname isabs join normpath relpath:start split splitext",
    "re": "compile:flags search:flags match:flags fullmatch:flags findall:flags finditer~:flags"
    " split:maxsplit,flags sub@1:count,flags subn@1:count,flags escape error! A= ASCII= I= IGNORECASE= M="
    " MULTILINE= S= DOTALL= X= VERBOSE= U= UNICODE=",
    "shlex": "split:comments,posix quote join",
    "statistics": "mean fmean geometric_mean harmonic_mean median median_low median_high mode multimode pstdev"
    " pvariance stdev variance quantiles:n,method correlation covariance linear_regression StatisticsError!",
    "string": "ascii_letters= ascii_lowercase= ascii_uppercase= digits= hexdigits= octdigits= punctuation="
    " printable= whitespace= capwords Template#",
    "sys": "maxsize=",
    "textwrap": "dedent indent:prefix fill:width,initial_indent,subsequent_indent,break_long_words,break_on_hyphens,"
    "expand_tabs,replace_whitespace,drop_whitespace,max_lines,placeholder"
    " wrap:width,initial_indent,subsequent_indent,break_long_words,break_on_hyphens,expand_tabs,replace_whitespace,"
    "drop_whitespace,max_lines,placeholder shorten:width,placeholder",
    "tomllib": "loads TOMLDecodeError!",
    "unicodedata": "bidirectional category combining decimal digit east_asian_width is_normalized lookup mirrored"
    " name normalize numeric",
    "urllib.parse": "parse_qs:keep_blank_values,strict_parsing,encoding,max_num_fields,separator"
    " parse_qsl:keep_blank_values,strict_parsing,encoding,max_num_fields,separator quote:safe quote_plus:safe"
    " unquote unquote_plus urldefrag urlencode:doseq,safe urljoin urlparse urlsplit urlunparse urlunsplit",
    "uuid": "UUID#:hex,int uuid5 NAMESPACE_DNS= NAMESPACE_URL= NAMESPACE_OID= NAMESPACE_X500=",
    "zoneinfo": "ZoneInfo#:key ZoneInfoNotFoundError!",
}

_ENTRY = re.compile(r"([A-Za-z_][\w.]*)([=!#]?)(~?)(?:@(\d))?(?::(.*))?")
_KIND = {"": "function", "=": "constant", "!": "exception", "#": "class"}


@cache
def facades() -> dict[str, dict[str, Entry]]:
    """The entries of each façade: module → dotted name → entry."""
    tables: dict[str, dict[str, Entry]] = {}
    for module, text in _FACADES.items():
        table = tables[module] = {}
        for word in text.split():
            m = _ENTRY.fullmatch(word)
            assert m, word
            name, kind, lazy, callback, keywords = m.groups()
            table[name] = Entry(
                _KIND[kind],
                bool(lazy),
                None if callback is None else int(callback),
                frozenset((keywords or "").split(",")) - {""},
            )
    return tables


#: The modules that have a façade.
MODULES = frozenset(_FACADES)

#: Modules that authors often try to import, and their replacements.
INSTEAD: dict[str, str] = {
    "os": "use tools.list_directory for folders, and posixpath for joining and splitting paths",
    "os.path": "use posixpath: from posixpath import join, basename, splitext",
    "pathlib": "paths are strings here: use posixpath.join, posixpath.splitext, posixpath.basename",
    "time": "call tools.current_time() and tools.sleep(seconds=…)",
    "random": "programs are deterministic; take the values as a parameter",
    "secrets": "programs are deterministic; take the value as a parameter",
    "subprocess": "call tools.bash(command=…)",
    "requests": "call tools.http_request(url=…)",
    "urllib": "import urllib.parse",
    "urllib.request": "call tools.http_request(url=…)",
    "http": "call tools.http_request(url=…)",
    "httpx": "call tools.http_request(url=…)",
    "glob": "list with tools.list_directory(path=…, recursive=True) and choose by name",
    "fnmatch": "choose by name with str.endswith or re.fullmatch",
    "shutil": "read and write with tools.read_file and tools.write_file",
    "pprint": "use json.dumps(value, indent=2)",
    "yaml": "use json or tomllib, or read the lines yourself",
    "threading": "write parallel(tools.x(a=i) for i in items)",
    "asyncio": "write parallel(tools.x(a=i) for i in items)",
    "concurrent.futures": "write parallel(tools.x(a=i) for i in items)",
    "dataclasses": "use a dict, or a TypedDict class",
    "enum": "use Literal[…] or constants",
    "logging": "use print(); it goes to the run's log",
    "pickle": "use json",
    "array": "use a list",
    "cmath": "keep both parts as floats; math.hypot and math.atan2 give length and angle",
    "numbers": "ask isinstance(value, (int, float))",
    "abc": "there are no classes of your own; write helpers",
    "contextlib": "write try: … except ValueError: pass",
    "warnings": "use print(); it goes to the run's log",
    "traceback": "str(error) and error.code say what failed",
    "numpy": "use lists; math and statistics have functions for numbers",
    "pandas": "use lists of dicts; csv and statistics read and count",
}

METHODS_BY_TYPE: dict[str, str] = {
    "str": """capitalize casefold center count encode endswith expandtabs find index isalnum isalpha isascii
        isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip
        partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines
        startswith strip swapcase title translate upper zfill""",
    "bytes": "decode hex",
    "int": "as_integer_ratio bit_count bit_length to_bytes",
    "float": "is_integer",
    "list": "append clear copy count extend index insert pop remove reverse sort",
    "dict": "clear copy get items keys pop popitem setdefault update values",
    "set": """add difference difference_update discard intersection intersection_update isdisjoint issubset issuperset
        symmetric_difference symmetric_difference_update union update""",
    "re.Pattern": "findall finditer fullmatch match search split sub subn",
    "re.Match": "end expand group groupdict groups span start",
    "datetime": """astimezone ctime date dst isocalendar isoformat isoweekday strftime time timestamp timetuple toordinal
        total_seconds tzname utcoffset weekday""",
    "hashlib": "digest hexdigest",
    "ipaddress": "address_exclude compare_networks hosts overlaps subnet_of subnets supernet supernet_of",
    "io.StringIO": "getvalue read readline readlines seek tell truncate write writelines",
    "csv": "writeheader writerow writerows",
    "collections": """appendleft elements extendleft most_common move_to_end popleft rotate subtract total""",
    "decimal": """adjusted as_tuple compare copy_abs copy_negate copy_sign is_finite is_infinite is_nan is_signed
        is_zero normalize quantize sqrt to_integral_value""",
    "fractions": "limit_denominator",
    "string.Template": "safe_substitute substitute",
    "difflib": "find_longest_match get_matching_blocks get_opcodes quick_ratio ratio",
    "urllib.parse": "geturl",
}

#: Names of methods that may be called.
METHODS = frozenset(name for names in METHODS_BY_TYPE.values() for name in names.split())

#: Methods of text. They return new or immutable values.
TEXT_METHODS = frozenset(METHODS_BY_TYPE["str"].split())

#: Methods that change their object. They can't be callbacks, and bodies of `parallel` can't call them on outer values.
MUTATORS = frozenset(
    """add append appendleft clear difference_update discard extend extendleft insert intersection_update move_to_end
    pop popitem popleft read readline readlines remove reverse rotate seek setdefault sort subtract
    symmetric_difference_update truncate update write writeheader writelines writerow writerows""".split()
)

#: Methods that can make a container larger.
GROWERS = frozenset(
    """add append appendleft extend extendleft insert setdefault update symmetric_difference_update subtract write
    writelines""".split()
)

#: Methods that return a lazy iterator.
LAZY_METHODS = frozenset({"address_exclude", "elements", "finditer", "hosts", "subnets"})

#: Methods that consume an iterator given as an argument.
CONSUMING_METHODS = frozenset(
    """difference difference_update extend extendleft fromkeys intersection intersection_update isdisjoint issubset
    issuperset join symmetric_difference symmetric_difference_update union update writelines writerow writerows
    subtract""".split()
)

#: Attributes that programs may read.
ATTRIBUTES = frozenset(
    """args code message retryable tool
    day days fold hour microsecond microseconds minute month second seconds tzinfo year
    denominator imag numerator real
    fragment hostname netloc params password path port query scheme url username
    endpos flags groupindex lastgroup lastindex pattern pos string
    fieldnames line_num maxlen template
    a b size slope intercept
    block_size digest_size name
    broadcast_address compressed exploded hostmask ip ipv4_mapped is_global is_link_local is_loopback is_multicast is_private
    is_reserved is_unspecified max_prefixlen netmask network network_address num_addresses packed prefixlen reverse_pointer
    version with_hostmask with_netmask with_prefixlen
    key""".split()
)

#: Names of text encodings. The worker loads all of them at its start. `encode`, `decode`, `str` and `bytes` accept no others.
ENCODINGS = frozenset(
    """utf-8 utf8 utf_8 ascii us-ascii latin-1 latin1 latin_1 iso-8859-1 iso8859-1 utf-16 utf16 utf-16-le utf-16-be
    utf-32 utf-32-le utf-32-be
    utf-8-sig utf_8_sig cp1252 windows-1252 unicode_escape raw_unicode_escape""".split()
)
