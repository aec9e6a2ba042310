"""What the functions of the façades return. A function that is not in the table returns anything that its arguments contain."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable
from contextlib import suppress

from albert_tools.engine.analysis import templates
from albert_tools.engine.analysis.calls import (
    Invocation,
    call_back,
    error_of,
    is_written,
    keyword_callback,
    name_of,
    places_of,
    text_result,
    truth_result,
)
from albert_tools.engine.analysis.containers import (
    anything,
    concern,
    copy_of,
    list_like,
    merge,
    new_dict,
    new_list,
    new_tuple,
    numbers,
    only_site,
    put_all,
    read_keys,
    taken,
    text_of,
)
from albert_tools.engine.analysis.encoded_texts import ENCODERS
from albert_tools.engine.analysis.operators import concatenated
from albert_tools.engine.analysis.paths_below import folder_of, last_name, without_ending, without_folder
from albert_tools.engine.analysis.regular_expressions import MATCHING, match_objects, replaced
from albert_tools.engine.analysis.state import Analysis
from albert_tools.engine.analysis.values import (
    A_NUMBER,
    EMPTY_TEXT,
    KEYS,
    NEVER,
    NONE,
    REST,
    WRITTEN,
    AbstractValue,
    Origins,
    constant,
    join,
)
from albert_tools.engine.model.manifest import Hole
from albert_tools.engine.model.vocabulary import facades
from albert_tools.grammar import tree

_Function = Callable[[Analysis, Invocation], AbstractValue]
_MAX_COMBINATIONS = 16


def call_facade(analysis: Analysis, module: str, name: str, call: Invocation) -> AbstractValue:
    """The result of a function of a façade."""
    function = _FUNCTIONS.get(f"{module}.{name}") or ENCODERS.get(f"{module}.{name}") or _MODULES.get(module)
    if module == "operator":
        read_keys(analysis, call.control, *call.all)
    if name in facades()[module] and facades()[module][name].kind == "exception":
        return error_of(analysis, call)
    if module == "re":
        result = _of_re(analysis, name, call)
        if result is not None:
            return result
    return function(analysis, call) if function is not None else _default(analysis, call)


def _default(analysis: Analysis, call: Invocation) -> AbstractValue:
    """Anything. Callbacks among the arguments are called."""
    given = [*call.all]
    for argument in [*call.node.args, *(k.value for k in call.node.keywords)]:
        if is_written(analysis, argument) or (analysis.facts.facade(argument) or ("", ""))[0] in (
            "heapq",
            "bisect",
            "io",
            "operator",
        ):
            inner = anything(analysis, argument, *[v | analysis.heap.items(v) for v in given], tag="given")
            given.append(
                call_back(
                    analysis, call.node, argument, [inner] * (places_of(analysis, argument) or 1), call.control, inner
                )
            )
    return anything(analysis, call.node, *given)


def _number(analysis: Analysis, call: Invocation) -> AbstractValue:
    return numbers(analysis, *call.all).under(_compared(analysis, call))


def _compared(analysis: Analysis, call: Invocation) -> Origins:
    """What the key function of `bisect` and `insort` decides. It is called for some items and for the value."""
    key = keyword_callback(call, "key")
    if key is None:
        return frozenset()
    item = analysis.heap.items(call.arguments.get(0) or NEVER) | (call.arguments.get(1) or NEVER)
    over = new_list(analysis, call.node, "compared", item)
    analysis.sized(only_site(over), "unknown")
    return analysis.heap.condition(call_back(analysis, call.node, key, [item], call.control, over))


def _of_re(analysis: Analysis, name: str, call: Invocation) -> AbstractValue | None:
    if name in MATCHING or name == "split":
        return match_objects(analysis, call.node, name, call.arguments.get(1, "string") or NEVER, call.all)
    if name in ("sub", "subn"):
        function = call.node.args[1] if len(call.node.args) > 1 else keyword_callback(call, "repl")
        return replaced(analysis, call, name, function, call.arguments.get(2, "string") or NEVER, call.all)
    return None


def _loads(analysis: Analysis, call: Invocation) -> AbstractValue:
    parsed = anything(analysis, call.node, *call.all)
    analysis.sized(analysis.site(call.node, "any"), "length", analysis.remember(call.node, join(call.all)))
    return parsed


# Paths


def _path_join(analysis: Analysis, call: Invocation) -> AbstractValue:
    if call.arguments.more is not NEVER or not call.arguments.positional:
        return text_of(analysis, *call.all)
    path = call.arguments.positional[0]
    for part in call.arguments.positional[1:]:
        path = _joined(analysis, path, part)
    return path


def _joined(analysis: Analysis, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """``posixpath.join(left, right)``: a right side that may begin with ``/`` replaces the left side."""
    ours, theirs = left.constants(), right.constants()
    if ours and theirs and len(ours) * len(theirs) <= _MAX_COMBINATIONS:
        path = NEVER
        for x in ours:
            for y in theirs:
                with suppress(TypeError):
                    path = path | constant(posixpath.join(x, y))  # type: ignore[call-overload]
        return AbstractValue(path.alternatives, left.data | right.data, left.control | right.control)
    if right.alternatives == frozenset({(templates.INSIDE,)}):
        return concatenated(analysis, left, AbstractValue(frozenset({(templates.BELOW,)}), right.data, right.control))
    with_slash = concatenated(analysis, concatenated(analysis, left, constant("/")), right)
    path = with_slash
    if any(_may_end_with_slash(t) for t in left.alternatives):
        path = path | concatenated(analysis, left, right)
    if any(_may_begin_with_slash(t) for t in right.alternatives) or not right.alternatives:
        path = path | right
    return AbstractValue(path.alternatives, left.data | right.data, left.control | right.control)


def _may_end_with_slash(t: templates.Alternative) -> bool:
    """Whether a path may end with a slash, or be empty."""
    if not t or isinstance(t, templates.Constant):
        return True
    last = t[-1]
    return last.endswith("/") if isinstance(last, str) else last not in (templates.NUMBER, templates.BELOW)


def _may_begin_with_slash(t: templates.Alternative) -> bool:
    if isinstance(t, templates.Constant):
        return False
    if folder_of(t) is not None:
        return False
    first = next((part for part in t if part != ""), "")
    if isinstance(first, str):
        return first.startswith("/")
    is_name = isinstance(first, Hole) and first.kind == "name"
    return not is_name and first not in (templates.NUMBER, templates.WORD, templates.INSIDE)


def _computed(function: Callable[[str], str], value: AbstractValue) -> AbstractValue | None:
    """The result of a function for constant texts; None if they are not known."""
    known = value.constants()
    if not known or not all(isinstance(k, str) for k in known):
        return None
    result = join(constant(function(str(k))) for k in known)
    return AbstractValue(result.alternatives, value.data, value.control)


def _path_piece(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`basename` and `dirname`"""
    value = join(call.all)
    name = call.node.func.attr if isinstance(call.node.func, tree.Attribute) else ""
    function = {"basename": posixpath.basename, "dirname": posixpath.dirname}.get(name)
    computed = _computed(function, value) if function is not None else None
    known = last_name if name == "basename" else None
    return computed or AbstractValue(templates.pieces(value.alternatives, known), *analysis.heap.deep(value))


def _path_pieces(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`split` and `splitext`"""
    value = join(call.all)
    known = (None, last_name) if name_of(call.node) == "split" else (without_ending, None)
    parts = [AbstractValue(templates.pieces(value.alternatives, of), *analysis.heap.deep(value)) for of in known]
    return new_tuple(analysis, call.node, parts)


def _relpath(analysis: Analysis, call: Invocation) -> AbstractValue:
    relative_path = text_of(analysis, *call.all)
    if len(call.arguments.positional) != 2 or len(call.all) != 2 or relative_path.sites:
        return relative_path
    path, start = call.arguments.positional
    parts = [without_folder(t, start.alternatives) for t in path.alternatives]
    known = not path.sites and not start.sites and all(parts)
    return relative_path._replace(alternatives=frozenset({(templates.INSIDE,)})) if parts and known else relative_path


def _normpath(analysis: Analysis, call: Invocation) -> AbstractValue:
    return _computed(posixpath.normpath, join(call.all)) or text_of(analysis, *call.all)


def _quote(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`shlex.quote`: one word for a shell, whatever the text is."""
    value = join(call.all)
    computed = _computed(shlex.quote, value)
    if computed is not None:
        return computed
    quoted = frozenset((Hole("quoted", of=templates.stored(t)),) for t in value.alternatives)
    return AbstractValue(templates.union(quoted), *analysis.heap.deep(value))


# Containers


def _counter(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = join(call.arguments.positional) | call.arguments.more
    decided = analysis.heap.condition(source)
    made = new_dict(analysis, call.node, analysis.heap.items(source), A_NUMBER._replace(data=decided, control=decided))
    # The values of a dictionary are taken as they are.
    merge(
        analysis,
        only_site(made),
        source._replace(sites=frozenset(s for s in source.sites if analysis.heap.kind(s) != "list")),
    )
    for name, value in call.arguments.named.items():
        analysis.heap.put(only_site(made), name, value)
        analysis.changed_by(only_site(made), analysis.remember(call.node, constant("x"), f"named {name}"))
    analysis.sized(only_site(made), "length", analysis.remember(call.node, source))
    return made.under(decided)


def _defaultdict(analysis: Analysis, call: Invocation) -> AbstractValue:
    made = new_dict(analysis, call.node)
    site = only_site(made)
    factory = call.node.args[0] if call.node.args else None
    name = factory.id if isinstance(factory, tree.Name) else ""
    if factory is not None and (named := analysis.facts.facade(factory)) is not None:
        name = named[1]
    if isinstance(factory, tree.Lambda):
        default = analysis.evaluate(factory.body, call.control)  # a constant
    elif name in ("list", "set", "tuple", "frozenset", "deque", "dict", "Counter", "OrderedDict"):
        kind = "dict" if name in ("dict", "Counter", "OrderedDict") else "list"
        default = analysis.heap.make(analysis.site(call.node, "default"), kind)
        if name == "Counter":
            analysis.heap.put(only_site(default), REST, A_NUMBER)
        analysis.sized(only_site(default), "number", 0)
    elif name == "str":
        default = EMPTY_TEXT
    elif name in ("int", "float", "bool"):
        default = constant({"int": 0, "float": 0.0, "bool": False}[name])
    else:
        default = NONE
    analysis.heap.set_default(site, default)
    analysis.sized(site, "number", 0)
    for value in call.all[1:]:
        merge(analysis, site, value)
        analysis.changed_by(site, analysis.remember(call.node, value))
    return made


def _deque(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0, "iterable") or NEVER
    most = join(call.all[1:]) | join(call.arguments.named.values())
    made = list_like(analysis, call.node, source).under(analysis.heap.condition(most))
    if analysis.heap.sources(most):
        # `maxlen` returns it.
        analysis.heap.put(only_site(made), REST, numbers(analysis, most))
    return made


def _ordered(analysis: Analysis, call: Invocation) -> AbstractValue:
    made = new_dict(analysis, call.node)
    analysis.sized(only_site(made), "number", len(call.arguments.named))
    source = join(call.arguments.positional) | call.arguments.more
    merge(analysis, only_site(made), source)
    for name, value in call.arguments.named.items():
        analysis.heap.put(only_site(made), name, value)
    if source is not NEVER:
        analysis.changed_by(only_site(made), analysis.remember(call.node, source))
    return made.under(analysis.heap.shape(source))


def _shallow_copy(analysis: Analysis, call: Invocation) -> AbstractValue:
    return copy_of(analysis, call.node, join(call.all))


def _push(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`heappush`, `heapreplace`, `heappushpop`, and `insort` of a sorted list."""
    container = call.arguments.get(0) or NEVER
    put_all(analysis, container, REST, (call.arguments.get(1) or NEVER).under(call.control))
    decided = call.control | _compared(analysis, call) | analysis.heap.condition(container, *call.all[2:])
    concern(analysis, container, decided)
    return analysis.heap.items(container) | NONE


def _pop(analysis: Analysis, call: Invocation) -> AbstractValue:
    container = call.arguments.get(0) or NEVER
    concern(analysis, container, call.control | analysis.heap.condition(container))
    return analysis.heap.items(container) | NONE


def _best(analysis: Analysis, call: Invocation) -> AbstractValue:
    """`nlargest` and `nsmallest`"""
    source = call.arguments.get(1, "iterable") or NEVER
    number = join(call.all[:1])
    item = taken(analysis, analysis.heap.items(source), number)
    key = keyword_callback(call, "key")
    if key is not None:
        item = item.under(analysis.heap.condition(call_back(analysis, call.node, key, [item], call.control, source)))
    return list_like(analysis, call.node, source, item).under(analysis.heap.condition(source, number))


def _chain(analysis: Analysis, call: Invocation) -> AbstractValue:
    made = new_list(analysis, call.node, "chain", join(analysis.heap.items(v) for v in call.all))
    analysis.sized(only_site(made), "sum", *[analysis.remember(call.node, v, str(i)) for i, v in enumerate(call.all)])
    if call.arguments.more is not NEVER:
        analysis.sized(only_site(made), "unknown")
    return made.under(frozenset[str]().union(*(analysis.heap.shape(v) for v in call.all)))


def _islice(analysis: Analysis, call: Invocation) -> AbstractValue:
    source, places = call.arguments.get(0) or NEVER, call.all[1:]
    item = taken(analysis, analysis.heap.items(source), *places)
    return list_like(analysis, call.node, source, item).under(analysis.heap.condition(*places))


def _groupby(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0, "iterable") or NEVER
    item = analysis.heap.items(source)
    function = keyword_callback(call, "key") or (call.node.args[1] if len(call.node.args) > 1 else None)
    key = item if function is None else call_back(analysis, call.node, function, [item], call.control, source)
    decided = analysis.heap.condition(key) | analysis.heap.shape(source)
    group = list_like(analysis, call.node, source).under(decided)
    pair = new_tuple(analysis, call.node, [key, group])
    made = new_list(analysis, call.node, "groupby", pair.under(decided))
    analysis.sized(only_site(made), "length", analysis.remember(call.node, source))
    return made.under(decided)


def _reduce(analysis: Analysis, call: Invocation) -> AbstractValue:
    if not call.node.args:
        return anything(analysis, call.node, *call.all)
    start = join(call.all[2:]) | call.arguments.more
    return _combined(analysis, call, call.node.args[0], call.arguments.get(1) or NEVER, start)


def _accumulate(analysis: Analysis, call: Invocation) -> AbstractValue:
    if len(call.node.args) < 2:
        return _default(analysis, call)
    source, start = call.arguments.get(0) or NEVER, call.arguments.named.get("initial", NEVER) | call.arguments.more
    made = new_list(analysis, call.node, "results", _combined(analysis, call, call.node.args[1], source, start))
    amounts = [analysis.remember(call.node, source, "source")]
    # `initial` is one more item.
    amounts += [analysis.remember(call.node, constant("x"), "initial")] if start is not NEVER else []
    analysis.sized(only_site(made), "sum", *amounts)
    return made.under(analysis.heap.shape(source))


def _combined(
    analysis: Analysis, call: Invocation, function: tree.Expr, source: AbstractValue, start: AbstractValue
) -> AbstractValue:
    """The results of a function that is called with its earlier result and each item."""
    item = analysis.heap.items(source)
    first = start | item
    earlier = analysis.lengths[analysis.remember(call.node, NEVER, "earlier")]
    result = call_back(analysis, call.node, function, [first | earlier, item], call.control, source)
    analysis.remember(call.node, result, "earlier")
    return (first | result).under(analysis.heap.shape(source))


def _csv_reader(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0) or NEVER
    cell = text_of(analysis, *call.all)
    row = new_list(analysis, call.node, "row", cell)
    analysis.sized(only_site(row), "unknown")
    return list_like(analysis, call.node, source, row.under(cell.origins)).under(cell.origins)


def _csv_dicts(analysis: Analysis, call: Invocation) -> AbstractValue:
    source = call.arguments.get(0, "f") or NEVER
    cell = text_of(analysis, *call.all)
    extra = new_list(analysis, call.node, "extra", cell)
    analysis.sized(only_site(extra), "unknown")
    row = analysis.heap.make(analysis.site(call.node, "row"), "dict", outside=True)
    analysis.heap.put(only_site(row), REST, cell | NONE | extra | join(call.all[1:]))
    analysis.heap.put(only_site(row), KEYS, cell | NONE)
    analysis.sized(only_site(row), "unknown")
    return list_like(analysis, call.node, source, row.under(cell.origins)).under(cell.origins)


def _string_io(analysis: Analysis, call: Invocation) -> AbstractValue:
    made = new_list(analysis, call.node, "buffer", text_of(analysis, *call.all))
    if call.all:
        analysis.heap.put(only_site(made), WRITTEN, text_of(analysis, *call.all))  # what is written next overwrites it
    analysis.sized(only_site(made), "length", analysis.remember(call.node, join(call.all)))
    analysis.note(analysis.buffers, *made.sites)
    return AbstractValue(data=made.data.union(*(v.data for v in call.all)), sites=made.sites)


_MODULES: dict[str, _Function] = {
    "math": _number,
    "base64": text_result,
    "html": text_result,
    "textwrap": text_result,
    "unicodedata": text_result,
}
_FUNCTIONS: dict[str, _Function] = {
    "json.loads": _loads,
    "tomllib.loads": _loads,
    "ast.literal_eval": _loads,
    "posixpath.join": _path_join,
    "posixpath.basename": _path_piece,
    "posixpath.dirname": _path_piece,
    "posixpath.split": _path_pieces,
    "posixpath.splitext": _path_pieces,
    "posixpath.normpath": _normpath,
    "posixpath.relpath": _relpath,
    "posixpath.isabs": truth_result,
    "shlex.quote": _quote,
    "shlex.join": text_result,
    "re.escape": text_result,
    "string.capwords": text_result,
    "textwrap.wrap": lambda analysis, call: anything(analysis, call.node, *call.all),
    **dict.fromkeys(
        [f"urllib.parse.{n}" for n in "unquote unquote_plus urljoin urlunparse urlunsplit".split()],
        text_result,
    ),
    **dict.fromkeys([f"math.{n}" for n in ("isclose", "isfinite", "isinf", "isnan")], truth_result),
    **dict.fromkeys(
        [f"math.{n}" for n in ("frexp", "modf", "prod")],
        lambda analysis, call: anything(analysis, call.node, *call.all),
    ),
    **dict.fromkeys([f"bisect.{n}" for n in ("bisect", "bisect_left", "bisect_right")], _number),
    **dict.fromkeys([f"bisect.{n}" for n in ("insort", "insort_left", "insort_right")], _push),
    **dict.fromkeys([f"heapq.{n}" for n in ("heappush", "heapreplace", "heappushpop")], _push),
    **dict.fromkeys([f"heapq.{n}" for n in ("heappop", "heapify")], _pop),
    **dict.fromkeys([f"heapq.{n}" for n in ("nlargest", "nsmallest")], _best),
    "collections.Counter": _counter,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _deque,
    "collections.OrderedDict": _ordered,
    "copy.copy": _shallow_copy,
    "itertools.accumulate": _accumulate,
    "itertools.chain": _chain,
    "itertools.islice": _islice,
    "itertools.groupby": _groupby,
    "functools.reduce": _reduce,
    "csv.reader": _csv_reader,
    "csv.DictReader": _csv_dicts,
    "io.StringIO": _string_io,
}
