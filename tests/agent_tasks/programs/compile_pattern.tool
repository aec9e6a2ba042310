from collections import deque


def _parse(pattern: str) -> tuple[list, int, int]:
    """Build the edges of a nondeterministic automaton: [from, character or None, to]."""
    edges = []
    count = 0
    position = 0

    def state():
        nonlocal count
        count += 1
        return count - 1

    def atom():
        nonlocal position
        c = pattern[position]
        if c == "(":
            position += 1
            start, end = either()
            if position >= len(pattern) or pattern[position] != ")":
                raise ToolError(f"a ) is missing at {position}")
            position += 1
            return start, end
        if c in "*+?)|":
            raise ToolError(f"{c!r} at {position} has nothing before it")
        if c == "\\":
            position += 1
            c = pattern[position]
        start, end = state(), state()
        edges.append([start, c, end])
        position += 1
        return start, end

    def repeated():
        nonlocal position
        start, end = atom()
        while position < len(pattern) and pattern[position] in "*+?":
            c = pattern[position]
            position += 1
            a, b = state(), state()
            edges.extend([[a, None, start], [end, None, b]])
            if c != "+":
                edges.append([a, None, b])
            if c != "?":
                edges.append([end, None, start])
            start, end = a, b
        return start, end

    def sequence():
        start = end = state()
        while position < len(pattern) and pattern[position] not in "|)":
            a, b = repeated()
            edges.append([end, None, a])
            end = b
        return start, end

    def either():
        nonlocal position
        start, end = sequence()
        while position < len(pattern) and pattern[position] == "|":
            position += 1
            a, b = sequence()
            first, last = state(), state()
            edges.extend([[first, None, start], [first, None, a], [end, None, last], [b, None, last]])
            start, end = first, last
        return start, end

    start, end = either()
    if position < len(pattern):
        raise ToolError(f"{pattern[position]!r} at {position} is not opened")
    return edges, start, end


@example(
    arguments={"pattern": "a(b|c)*", "texts": ["a", "abcb", "", "ad"]},
    result={"states": 2, "alphabet": ["a", "b", "c"], "accepting": [1], "table": [{"a": 1}, {"b": 1, "c": 1}], "matches": [True, True, False, False]},
)
@example(arguments={"pattern": "(a", "texts": []}, raises="tool_error")
def compile_pattern(pattern: str, texts: list[str]) -> dict:
    """Compile a regular expression to the smallest automaton and say which texts it matches as a whole.

    Args:
        pattern: Characters, (), |, *, +, ? and \\ before a special character.
        texts: The texts to match.
    """
    edges, start, end = _parse(pattern)
    silent, loud = {}, {}
    for a, c, b in edges:
        if c is None:
            silent.setdefault(a, []).append(b)
        else:
            loud.setdefault((a, c), []).append(b)
    alphabet = sorted({c for _, c, _ in edges if c is not None})

    def closure(states):
        found = set(states)
        queue = list(found)
        for s in queue:
            for t in silent.get(s, []):
                if t not in found:
                    found.add(t)
                    queue.append(t)
        return frozenset(found)

    first = closure([start])
    numbers, table, waiting = {first: 0}, [{}], deque([first])
    while waiting:
        here = waiting.popleft()
        for c in alphabet:
            after = closure([t for s in here for t in loud.get((s, c), [])])
            if not after:
                continue
            if after not in numbers:
                numbers[after] = len(table)
                table.append({})
                waiting.append(after)
            table[numbers[here]][c] = numbers[after]
    accepting = [end in states for states in numbers]

    # Split the classes of states until no two in a class differ
    classes = [int(a) for a in accepting]
    while True:
        signatures = [
            (classes[i], tuple(classes[table[i][c]] if c in table[i] else -1 for c in alphabet)) for i in range(len(table))
        ]
        order = {}
        for signature in signatures:
            order.setdefault(signature, len(order))
        refined = [order[s] for s in signatures]
        if refined == classes or len(order) == len(set(classes)):
            classes = refined
            break
        classes = refined
    small = [{} for _ in range(len(set(classes)))]
    for i, row in enumerate(table):
        for c, j in row.items():
            small[classes[i]][c] = classes[j]
    final = sorted({classes[i] for i, a in enumerate(accepting) if a})

    def matches(text):
        here = classes[0]
        for c in text:
            if c not in small[here]:
                return False
            here = small[here][c]
        return here in final

    return {
        "states": len(small),
        "alphabet": alphabet,
        "accepting": final,
        "table": small,
        "matches": [matches(text) for text in texts],
    }
