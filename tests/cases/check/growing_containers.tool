# a container that grows in a for statement over it
def t(xs: list, d: dict) -> list:
    """Grow."""
    for x in xs:
        xs.append(x)
    for i, x in enumerate(xs):
        xs.insert(0, x)
    for a, b in zip(xs, [1]):
        xs += [a]
    for k, v in d.items():
        d.update({v: k})
    for x in d["xs"]:
        d["xs"].append(x)
    return xs
---
# assigning to keys of a dict in a loop over it
def t(d: dict) -> dict:
    """Set."""
    for k in d:
        d[k] = 1
    return d
---
# extend and += with a lazy value over the same list
def t(xs: list) -> list:
    """Grow."""
    xs.extend(x for x in xs)  # error: 15 [grows-while-consumed] "'xs' is extended with values that are read from it"
    xs += map(str, xs)  # error: 11 [grows-while-consumed] "'xs' is extended with values that are read from it"
    xs.extend([x for x in xs])
    xs += [x for x in xs]
    return xs
---
# a list that grows in a comprehension over it
def t(xs: list) -> list:
    """Grow."""
    return [xs.append(x) for x in xs]  # error: 13 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# a list that grows in the condition of a comprehension over it
def t(xs: list) -> list:
    """Grow."""
    return [x for x in xs if xs.append(x)]  # error: 30 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# a list that grows in a key function
def t(xs: list) -> list:
    """Grow."""
    return sorted(xs, key=lambda x: xs.append(x))  # error: 37 [grows-while-consumed] "'xs' grows while it is being consumed"
---
# a nested container that grows in a comprehension over it
def t(d: dict) -> list:
    """Grow."""
    return [[d["xs"].append(x), d["ys"].append(x)] for x in d["xs"]]  # error: 14 [grows-while-consumed] "the container grows while it is being consumed"
---
# a recursive helper replaces a worklist
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
# the tool may not recurse through a helper
def _f(n: int) -> int:
    return t(n - 1)  # error: 12 [self-call] "the tool 't' calls itself"

def t(n: int) -> int:
    """Count."""
    return _f(n) if n else 0
---
# a bounded loop replaces a worklist
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
