"""The second gate checks the lowered text. It is RestrictedPython's transformer with a policy of its own.

It shares no table with the checker. Every kind of node, attribute, global and import must be in the lists of this file. So a defect
in one rule of the checker is not enough to break the sandbox. A test compares these lists with the language's vocabulary.

RestrictedPython provides a visitor that refuses unknown nodes, and a list of attributes that lead to frames. Its defaults accept
``import``, ``class``, ``global`` and a ``yield`` in a lambda; this module refuses them explicitly. The gate never rewrites the text
and inserts no guards. If the visitor would change the tree, the gate refuses the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from string import Formatter
from typing import Any, TypeVar

from RestrictedPython.transformer import INSPECT_ATTRIBUTES, RestrictingNodeTransformer

NODES = frozenset(
    """Module FunctionDef arguments arg Return Delete Assign AugAssign For While If Raise Try ExceptHandler Assert Import ImportFrom
    alias Expr Pass Break Continue Match match_case MatchValue MatchSingleton MatchSequence MatchMapping MatchClass MatchStar
    MatchAs MatchOr BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp comprehension
    Compare Call keyword FormattedValue JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice Load Store Del
    Nonlocal And Or Add Sub Mult MatMult Div Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE
    Gt GtE Is IsNot In NotIn""".split()
)

ATTRIBUTES = frozenset(
    """
    A ASCII AddressValueError Counter DOTALL Decimal DictReader DictWriter DivisionByZero Error FRIDAY Fraction I
    IGNORECASE IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network IllegalMonthError
    InvalidOperation JSONDecodeError M MONDAY MULTILINE NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500
    NetmaskValueError OrderedDict QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC ROUND_CEILING ROUND_DOWN
    ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP S SATURDAY SUNDAY SequenceMatcher
    StatisticsError StringIO THURSDAY TOMLDecodeError TUESDAY Template U UNICODE UTC UUID VERBOSE WEDNESDAY X ZoneInfo
    ZoneInfoNotFoundError a abs accumulate acos acosh add address_exclude adjusted and_ append appendleft args
    as_integer_ratio as_tuple ascii_letters ascii_lowercase ascii_uppercase asin asinh astimezone atan atan2 atanh b
    b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode basename bidirectional bisect
    bisect_left bisect_right bit_count bit_length blake2b blake2s block_size broadcast_address calendar capitalize
    capwords casefold category cbrt ceil center chain clear code collapse_addresses comb combinations
    combinations_with_replacement combine combining commonpath commonprefix compare compare_networks compile compress
    compressed concat contains context_diff copy copy_abs copy_negate copy_sign copysign correlation cos cosh count
    covariance ctime date datetime day day_abbr day_name days decimal decode dedent deepcopy defaultdict degrees
    denominator deque difference difference_update digest digest_size digit digits dirname discard dist dropwhile dst
    dumps e east_asian_width elements encode end endpos endswith eq erf erfc error escape exp exp2 expand expandtabs
    exploded expm1 extend extendleft fabs factorial fieldnames fill filterfalse find find_longest_match findall
    finditer flags floor floordiv fmean fmod fold fragment frexp from_bytes from_iterable fromhex fromisocalendar
    fromisoformat fromkeys fromordinal fromtimestamp fsum fullmatch gamma gcd ge geometric_mean get get_close_matches
    get_matching_blocks get_opcodes getitem geturl getvalue group groupby groupdict groupindex groups gt harmonic_mean
    heapify heappop heappush heappushpop heapreplace hex hexdigest hexdigits hostmask hostname hosts hour hypot imag
    indent index inf insert insort insort_left insort_right intercept intersection intersection_update inv invert ip
    ip_address ip_interface ip_network ipv4_mapped is_ is_finite is_global is_infinite is_integer is_link_local
    is_loopback is_multicast is_nan is_normalized is_not is_private is_reserved is_signed is_unspecified is_zero isabs
    isalnum isalpha isascii isclose isdecimal isdigit isdisjoint isfinite isidentifier isinf isleap islice islower
    isnan isnumeric isocalendar isoformat isoweekday isprintable isqrt isspace issubset issuperset istitle isupper
    itemgetter items join key keys lastgroup lastindex lcm ldexp le leapdays lgamma limit_denominator line_num
    linear_regression literal_eval ljust loads log log10 log1p log2 lookup lower lshift lstrip lt maketrans match max
    max_prefixlen maxlen maxsize md5 mean median median_high median_low merge message microsecond microseconds min minute
    mirrored mod mode modf month month_abbr month_name monthcalendar monthrange most_common move_to_end mul multimode
    name nan ndiff ne neg netloc netmask network network_address nextafter nlargest normalize normpath not_ nsmallest
    num_addresses numerator numeric octdigits or_ overlaps packed pairwise params parse parse_qs parse_qsl partition
    password path pattern perm permutations pi pop popitem popleft port pos pow prefixlen printable prod product pstdev
    punctuation pvariance quantiles quantize query quick_ratio quote quote_plus radians ratio read reader readline
    readlines real reduce relpath remainder remove removeprefix removesuffix repeat replace retryable reverse
    reverse_pointer rfind rindex rjust rotate rpartition rshift rsplit rstrip safe_substitute scheme search second
    seconds seek setdefault sha1 sha224 sha256 sha384 sha3_256 sha3_512 sha512 shorten sin sinh size slope sort span
    split splitext splitlines sqrt standard_b64decode standard_b64encode starmap start startswith stdev strftime string
    strip strptime sub subn subnet_of subnets substitute subtract summarize_address_range supernet supernet_of swapcase
    symmetric_difference symmetric_difference_update takewhile tan tanh tau tell template time timedelta timegm
    timestamp timetuple timezone title to_bytes to_integral_value tool toordinal total total_seconds translate truediv
    trunc truncate truth tzinfo tzname ulp unescape unified_diff union unquote unquote_plus update upper url
    urldefrag urlencode urljoin urlparse urlsafe_b64decode urlsafe_b64encode urlsplit urlunparse urlunsplit username utc
    utcoffset uuid5 values variance version weekday whitespace with_hostmask with_netmask with_prefixlen wrap write
    writeheader writelines writer writerow writerows xor year zfill zip_longest
    """.split()
)

GLOBALS = frozenset(
    """
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NotImplementedError
    OverflowError RuntimeError StopIteration SyntaxError ToolError TypeError UnicodeDecodeError UnicodeEncodeError
    UnicodeError ValueError ZeroDivisionError abs all any ascii bin bool bytes chr dict divmod enumerate filter float
    format frozenset hex int isinstance iter len list map max min next oct ord pow print range repr reversed round set
    slice sorted str sum tuple zip
    """.split()
)

MODULES = frozenset(
    """
    ast base64 bisect calendar collections copy csv datetime decimal difflib fractions functools hashlib heapq html io
    ipaddress itertools json math operator posixpath re shlex statistics string sys textwrap tomllib unicodedata
    urllib.parse uuid zoneinfo
    """.split()
)

#: Names that lowering adds. Some are called, others are read. A program can't bind them, except for one flag.
HIDDEN_CALLS = frozenset(
    """__call __gather __parallel __rounds __tick __fatal __join __format __str __repr __ascii __dict __type __type_name
    __factory""".split()
)
HIDDEN_NAMES = frozenset({"__Fatal", "__Exception", "__fine"})

#: RestrictedPython reserves these names for its rewriting, which is not used here. As names of variables they are harmless.
_HARMLESS = frozenset({"printed", "builtins", "breakpoint"})


class Refused(Exception):
    """The second gate found a construct that the checker should have refused. `problems` is a list of sentences."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def judge(module: ast.Module) -> None:
    """Check CPython's tree of a lowered text.

    Raises:
        Refused: The tree contains something that is not in the lists.
    """
    errors: list[str] = []
    policy = _Policy(errors, [], {})
    policy.visit(module)
    if "ToolError" in policy.bound:
        errors.append("'ToolError' is redefined")
    for free in sorted(set(policy.used_names) - policy.bound - GLOBALS - HIDDEN_CALLS - HIDDEN_NAMES):
        errors.append(f"{free!r} is not a name that programs have")
    if errors:
        raise Refused(errors)


_Node = TypeVar("_Node", bound=ast.AST)

#: The field of each kind of node that binds a name.
_BINDS = {
    "arg": "arg",
    "FunctionDef": "name",
    "ExceptHandler": "name",
    "MatchAs": "name",
    "MatchStar": "name",
    "MatchMapping": "rest",
}


class _Policy(RestrictingNodeTransformer):
    """Visits every node once. `used_names` collects each name that is read, and `bound` each name that is bound."""

    def __init__(self, errors: list[str], warnings: list[str], used_names: dict[str, bool]) -> None:
        super().__init__(errors, warnings, used_names)
        self.bound: set[str] = set()
        #: The operands of comparisons, and the types that `isinstance` asks for.
        self._compared: set[int] = set()

    def visit(self, node: ast.AST) -> Any:
        kind = type(node).__name__
        if kind not in NODES:
            self.not_allowed(node)
            return node
        if kind in _BINDS:
            self.bound.add(getattr(node, _BINDS[kind]) or "")
        elif isinstance(node, ast.alias):
            self.bound.add((node.asname or node.name).split(".")[0])
        return super().visit(node)

    def node_contents_visit(self, node: _Node) -> _Node:
        """Visit the children of a node. None may be replaced, because the text and not this tree is run."""
        self._visit_all(ast.iter_child_nodes(node))
        return node

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            if self.visit(node) is not node:
                self.error(node, "the gate would change the program")

    def visit_If(self, node: ast.If) -> ast.AST:
        branch = node
        # A chain of `elif` can be too long for recursion.
        while True:
            self._visit_all([branch.test, *branch.body])
            if len(branch.orelse) != 1 or not isinstance(following := branch.orelse[0], ast.If):
                break
            branch = following
        self._visit_all(branch.orelse)
        return node

    # RestrictedPython would insert guards at these nodes. Here they are only checked.

    def _contents(self, node: ast.AST) -> Any:
        return self.node_contents_visit(node)

    visit_Module = visit_AugAssign = visit_For = visit_While = visit_comprehension = _contents
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _contents
    visit_Subscript = visit_Delete = visit_Try = visit_arguments = visit_Starred = visit_MatMult = _contents
    visit_Match = visit_match_case = visit_MatchValue = visit_MatchSingleton = visit_MatchSequence = _contents
    visit_MatchOr = visit_NamedExpr = visit_Slice = visit_Lambda = _contents

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        """Check a name that is bound or read."""
        if name is None:
            return
        if not name.isascii():
            self.error(node, f"{name!r} is not ASCII")
        if name.startswith("__"):
            self.error(node, f"{name!r} is not a name that programs have")
        elif name not in GLOBALS and name not in _HARMLESS:
            # This is RestrictedPython's own rule, except that private helpers (`_x`) are accepted.
            super().check_name(node, name.lstrip("_"))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            self.used_names[node.id] = True
            if node.id in HIDDEN_NAMES:
                return node
        elif isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        self.check_name(node, node.id)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node:
            case ast.Assign(targets=[ast.Name(id="__fine")], value=ast.Constant(value=bool())):
                # The only flag. It says whether a `finally` may run.
                return node
        return self.node_contents_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if node.annotation is not None:
            self.error(node, "an annotation was left")
        self.check_name(node, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.check_name(node, node.name)
        if node.decorator_list or node.returns is not None:
            self.error(node, "a decorator or an annotation was left")
        if node.args.vararg or node.args.kwarg or node.args.posonlyargs:
            self.error(node, "a function takes plain parameters only")
        self.node_contents_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in HIDDEN_CALLS:
            self.used_names[node.func.id] = True
            if node.func.id == "__type" and id(node) not in self._compared:
                self.error(node, "a type may only be compared, or asked for")
            if node.func.id == "__factory" and not isinstance(node.args[0], ast.Lambda):
                self.error(node, "only a lambda may make defaults")
            if node.func.id == "__call" and not _is_message(node):
                self.error(node, "a tool call must name its tool and its arguments")
            self._visit_all([*node.args, *node.keywords])
            return node
        match node.func:
            case ast.Name(id="isinstance"):
                self._compared.update(map(id, node.args[1:]))
            case ast.Attribute(value=ast.Constant(value=str() as template), attr="format"):
                if not _names_arguments(template):
                    self.error(node, "the fields of a formatted text may only name arguments")
                self._visit_all([*node.args, *node.keywords])
                return node
        return self.node_contents_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self._compared.update(id(operand) for operand in (node.left, *node.comparators))
        return self.node_contents_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg is not None and node.arg.startswith("__"):
            self.error(node, f"{node.arg!r} is not a keyword that programs have")
        return self.node_contents_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self.error(node, f"the attribute {node.attr!r} is assigned or deleted")
        if node.attr not in ATTRIBUTES or node.attr in INSPECT_ATTRIBUTES:
            self.error(node, f"{node.attr!r} is not an attribute that programs have")
        return self.node_contents_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.type is None:
            self.error(node, "a handler must name what it handles")
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        if node.patterns or node.kwd_attrs or node.kwd_patterns:
            self.error(node, "a type pattern takes nothing in its brackets")
        return self.node_contents_visit(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        for name in node.names:
            self.check_name(node, name)
        return node

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        self.check_name(node, node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        self.check_name(node, node.rest)
        return self.node_contents_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if alias.name not in MODULES:
                self.error(node, f"{alias.name!r} is not a module that programs have")
        return self.check_import_names(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        parts = {a.name for a in node.names}
        whole = {f"{node.module}.{name}" for name in parts}
        if node.level or (not (node.module in MODULES and parts <= ATTRIBUTES) and not whole <= MODULES):
            self.error(node, f"{node.module!r} is not a module that programs have")
        return self.check_import_names(node)


def _names_arguments(template: str, depth: int = 2) -> bool:
    """Whether no field of a template reads an attribute or an item."""
    try:
        fields = [(name, spec or "") for _, name, spec, _ in Formatter().parse(template) if name is not None]
    except ValueError:
        return False
    plain = all(re.fullmatch("[0-9A-Za-z_]*", name) for name, _ in fields)
    return plain and (not fields or depth > 0) and all(_names_arguments(spec, depth - 1) for _, spec in fields)


def _is_message(node: ast.Call) -> bool:
    match node:
        case ast.Call(args=[ast.Constant(value=str()), ast.Dict(keys=keys)], keywords=[]):
            return all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in keys)
    return False
