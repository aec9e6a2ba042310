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
    xs.extend(x for x in xs)
    xs += map(str, xs)
    xs.extend([x for x in xs])
    xs += [x for x in xs]
    return xs
---
# a list that grows in a comprehension over it
def t(xs: list) -> list:
    """Grow."""
    return [xs.append(x) for x in xs]
---
# a list that grows in the condition of a comprehension over it
def t(xs: list) -> list:
    """Grow."""
    return [x for x in xs if xs.append(x)]
---
# a list that grows in a key function
def t(xs: list) -> list:
    """Grow."""
    return sorted(xs, key=lambda x: xs.append(x))
---
# a nested container that grows in a comprehension over it
def t(d: dict) -> list:
    """Grow."""
    return [[d["xs"].append(x), d["ys"].append(x)] for x in d["xs"]]
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
---
# while, with else, break and a condition
def t(n: int) -> int:
    """Halve."""
    rounds = 0
    while n > 1 and rounds < 100:
        n //= 2
        rounds += 1
        if n == 7:
            break
    else:
        rounds = -rounds
    return rounds
---
# while True with a way out
def t(xs: list) -> Any:
    """Search."""
    while True:
        x = xs.pop()
        if x:
            return x
---
# a loop that never ends
def t(n: int) -> int:
    """Count."""
    while True:  # error: 11 [endless-loop] "this loop never ends"
        n += 1
---
# a break inside an inner loop, and a return inside a nested function, don't end the loop
def t(n: int) -> int:
    """Count."""
    while 1:
        for i in [1]:
            break
        n += 1
---
# what follows while True without a break is never reached
def t(xs: list) -> int:
    """Pop."""
    while True:
        xs.pop()
    return 1  # warning: [unreachable] "this can't be reached"
---
# a name that only the body of a while assigns
def t(n: int) -> int:
    """Count."""
    while n > 3:
        last = n
        n -= 1
    return last  # warning: [unassigned] "'last' may not have a value here"
---
# a name that the test of a while assigns
def t(xs: list) -> int:
    """Count."""
    while (x := xs.pop()) > 3:
        pass
    return x
---
# the type of a name after a while
def t(x: str | None) -> str:
    """Wait."""
    while x is None:
        x = tools.read_file(path="a")
    return x + "!"
---
# a lazy value that the test of a while consumes is not consumed once
def t(xs: list) -> int:
    """Count."""
    n = 0
    ys = map(str, xs)  # error: 10 [lazy-value] "map(…) is lazy and must be consumed where it is made"
    while next(ys, None):
        n += 1
    return n
---
# break and continue in a while
def t(n: int) -> int:
    """Count."""
    while n:
        n -= 1
        if n % 2:
            continue
        if n > 5:
            break
    return n
---
# a loop that an exception leaves
def t(xs: list, d: dict, n: int) -> Any:
    """Loop."""
    i = 0
    try:
        while True:
            n += xs[i]
            i += 1
    except IndexError:
        pass
    try:
        while True:
            i = 10 // n
            n -= 1
    except ZeroDivisionError:
        pass
    try:
        while True:
            del d["k"]
    except KeyError:
        pass
    while True:
        a, *xs = xs
