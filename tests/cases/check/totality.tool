# a list that grows while a loop goes over it
def t(xs: list) -> list:
    """Grow."""
    for x in xs:
        xs.append(x)  # error: 9 [grows-while-consumed] "'xs' grows while it is being consumed"
    return xs
---
# through enumerate, zip, reversed and items
def t(xs: list, d: dict) -> list:
    """Grow."""
    for i, x in enumerate(xs):
        xs.insert(0, x)  # error: 9 [grows-while-consumed] "'xs' grows while it is being consumed"
    for a, b in zip(xs, [1]):
        xs += [a]  # error: 9 [grows-while-consumed] "'xs' grows while it is being consumed"
    for k, v in d.items():
        d.update({v: k})  # error: 9 [grows-while-consumed] "'d' grows while it is being consumed"
    return xs
---
# a dict's items may be set while it is gone over, but not added
def t(d: dict) -> dict:
    """Set."""
    for k in d:
        d[k] = 1
    return d
---
# it may shrink
def t(xs: list) -> list:
    """Shrink."""
    for x in list(xs):
        if not x:
            xs.remove(x)
    return xs
---
# a copy may be gone over
def t(xs: list) -> list:
    """Grow."""
    for x in list(xs):
        xs.append(x)
    for x in xs[:]:
        xs.append(x)
    for x in sorted(xs):
        xs.append(x)
    return xs
---
# growing once and leaving
def t(xs: list) -> list:
    """Grow."""
    for x in xs:
        if x == 1:
            xs.append(2)
            break
    for x in xs:
        if x == 1:
            xs.append(2)
            return xs
    return xs
---
# extend and += by what is read from it
def t(xs: list) -> list:
    """Grow."""
    xs.extend(x for x in xs)  # error: 15 [grows-while-consumed] "'xs' grows by values that are read from it"
    xs += map(str, xs)  # error: 11 [grows-while-consumed] "'xs' grows by values that are read from it"
    xs.extend([x for x in xs])
    xs += [x for x in xs]
    return xs
---
# in a comprehension
def t(xs: list) -> list:
    """Grow."""
    return [xs.append(x) for x in xs]  # error: 13 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# in the condition of a comprehension
def t(xs: list) -> list:
    """Grow."""
    return [x for x in xs if xs.append(x)]  # error: 30 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# in a key
def t(xs: list) -> list:
    """Grow."""
    return sorted(xs, key=lambda x: xs.append(x))  # error: 37 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# an item's container that grows
def t(d: dict) -> dict:
    """Grow."""
    for x in d["xs"]:
        d["xs"].append(x)  # error: 9 [grows-while-consumed] "the container grows while it is being consumed"
        d["ys"].append(x)
    return d
---
# a worklist as a growing loop is refused, and the recursive helper accepted
def _walk(node: dict, out: list) -> list:
    out.append(node["name"])
    for child in node.get("children", []):
        _walk(child, out)
    return out

def t(tree: dict) -> list:
    """Walk."""
    return _walk(tree, [])
---
# helpers may recurse mutually
def _even(n: int) -> bool:
    return n == 0 or _odd(n - 1)

def _odd(n: int) -> bool:
    return n != 0 and _even(n - 1)

def t(n: int) -> bool:
    """Ask."""
    return _even(n)
---
# the tool itself may not recurse
def t(n: int) -> int:
    """Count."""
    return 0 if n == 0 else t(n - 1)  # error: 29 [self-call] "the tool 't' calls itself"
---
# nor through a helper
def _f(n: int) -> int:
    return t(n - 1)  # error: 12 [self-call] "the tool 't' calls itself"

def t(n: int) -> int:
    """Count."""
    return _f(n) if n else 0
---
# a bounded loop for a worklist
def t(tree: dict) -> list:
    """Walk."""
    pending, names = [tree], []
    for _ in range(10_000):
        if not pending:
            break
        node = pending.pop()
        names.append(node["name"])
        pending.extend(node.get("children", []))
    return names
