# A comment
import json, re as r
from math import sqrt

LIMIT: int = 0xFF

class Row(TypedDict, total=False):
    name: str

@tool(timeout=60)
@example(arguments={"path": "notes.txt"}, files={"a": "b"},)
def f(path: str, n: int | None = None, *, deep: list[str] = []) -> dict:
    """Doc."""
    text = tools.read_file(path=path)  # trailing
    a, *b = c = [1, 2.5, *x, (3, 4)]
    d["k"][1:2, ::3] += -x ** 2
    if find not in text and not (a or b) is not None:
        raise ToolError(f"{find!r} does {a + 1:>{w}.2f} not {{}} occur" 'in' f'''{w=}{path
          }''') from e
    elif x: pass
    else:
        for i, (j, k) in enumerate(xs):
            continue
        else:
            print(*a, **b, sep="\n")
    match text, 1:
        case [1, *_] | {"a": str() as q, **rest} if q > 1:
            match = 3
            return match.x
        case -1 | "s" "t" | None | a.b:
            case = [y for x in xs if x for y in x if y]
        case _: return lambda a, b=1: a if b else {**a, 'k': v}
    try:
        x = {k: v for k, v in d.items()}; y = {1, 2}
    except (KeyError, ValueError) as e:
        raise
    finally:
        del d[k], e[1]
    return any(x := y for y in z), (yy for yy in "a"), {z for z in z}, ()
