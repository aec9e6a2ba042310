@example(
    arguments={"path": "inc.tm", "tape": "1011"},
    files={"inc.tm": "; add one\nstart: right\nhalt: done\nright 0 0 R right\nright 1 1 R right\nright _ _ L carry\ncarry 1 0 L carry\ncarry 0 1 L done\ncarry _ 1 L done\n"},
    result={"tape": "1100", "steps": 8, "state": "done"},
)
@example(
    arguments={"path": "loop.tm", "tape": "", "limit": 10},
    files={"loop.tm": "start: a\na _ _ R a\n"},
    raises="tool_error",
)
def run_turing_machine(path: str, tape: str, limit: int = 10000) -> dict:
    """Run a Turing machine from a file on a tape.

    Args:
        path: The machine: lines "state read write L|R|N next", "start: state", "halt: states"; ; begins a comment, _ is blank, * is any.
        tape: The text on the tape.
        limit: The largest number of steps.
    """
    rules, start, halting = {}, None, set()
    for number, line in enumerate(tools.read_file(path=path).splitlines(), 1):
        words = line.split(";")[0].split()
        match words:
            case []:
                pass
            case ["start:", state]:
                start = state
            case ["halt:", *states]:
                halting.update(states)
            case [state, read, write, ("L" | "R" | "N") as move, after]:
                if (state, read) in rules:
                    raise ToolError(f"line {number}: a second rule for {state} {read}")
                rules[state, read] = (write, {"L": -1, "R": 1, "N": 0}[move], after)
            case _:
                raise ToolError(f"line {number}: {line!r} is not understood")
    if start is None:
        raise ToolError("no start state")
    cells = {i: c for i, c in enumerate(tape)}
    head, state, steps = 0, start, 0
    while state not in halting:
        if steps == limit:
            raise ToolError(f"not halted after {limit} steps")
        read = cells.get(head, "_")
        rule = rules.get((state, read)) or rules.get((state, "*"))
        if rule is None:
            break
        write, move, state = rule
        cells[head] = read if write == "*" else write
        head += move
        steps += 1
    used = [i for i, c in cells.items() if c != "_"]
    text = "".join(cells.get(i, "_") for i in range(min(used), max(used) + 1)) if used else ""
    return {"tape": text, "steps": steps, "state": state}
