import csv
import io
import re

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([A-Z]+\d+)|([A-Z]+)|(.))")


def _cell_of(name: str) -> tuple:
    letters = name.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(name[len(letters):]) - 1, column - 1


def _tokens(text: str) -> list:
    found = []
    for match in _TOKEN.finditer(text):
        number, cell, word, other = match.groups()
        if number:
            found.append(("number", float(number)))
        elif cell:
            found.append(("cell", cell))
        elif word:
            found.append(("word", word))
        else:
            found.append((other, other))
    found.append(("end", ""))
    return found


def _parse(tokens: list) -> list:
    position = 0

    def peek():
        return tokens[position][0]

    def take(kind):
        nonlocal position
        if tokens[position][0] != kind:
            raise ValueError(f"expected {kind}, found {tokens[position][1]!r}")
        position += 1
        return tokens[position - 1][1]

    def primary():
        if peek() == "number":
            return ["number", take("number")]
        if peek() == "-":
            take("-")
            return ["negative", primary()]
        if peek() == "(":
            take("(")
            inner = expression()
            take(")")
            return inner
        if peek() == "word":
            name = take("word")
            take("(")
            arguments = [argument()]
            while peek() == ",":
                take(",")
                arguments.append(argument())
            take(")")
            return ["call", name, arguments]
        return ["cell", take("cell")]

    def argument():
        first = expression()
        if first[0] == "cell" and peek() == ":":
            take(":")
            return ["range", first[1], take("cell")]
        return first

    def term():
        left = primary()
        while peek() in ("*", "/"):
            operator = take(peek())
            left = [operator, left, primary()]
        return left

    def expression():
        left = term()
        while peek() in ("+", "-"):
            operator = take(peek())
            left = [operator, left, term()]
        return left

    tree = expression()
    take("end")
    return tree


def _evaluate(rows: list, done: dict, busy: set, cell: tuple) -> Any:
    if cell in done:
        return done[cell]
    if cell in busy:
        raise ValueError("#CYCLE")
    row, column = cell
    if row >= len(rows) or column >= len(rows[row]) or rows[row][column] == "":
        return 0
    text = rows[row][column]
    if not text.startswith("="):
        try:
            value = float(text)
        except ValueError:
            value = text
        done[cell] = value
        return value
    busy.add(cell)
    try:
        value = _value(rows, done, busy, _parse(_tokens(text[1:])))
    except ZeroDivisionError:
        value = "#DIV/0!"
    except ValueError as error:
        value = str(error) if str(error).startswith("#") else "#ERROR"
    busy.remove(cell)
    done[cell] = value
    return value


def _number(value: Any) -> float:
    if isinstance(value, str):
        raise ValueError(value if value.startswith("#") else "#VALUE!")
    return value


def _value(rows: list, done: dict, busy: set, tree: list) -> Any:
    match tree:
        case ["number", number]:
            return number
        case ["cell", name]:
            return _evaluate(rows, done, busy, _cell_of(name))
        case ["negative", inner]:
            return -_number(_value(rows, done, busy, inner))
        case ["call", name, arguments]:
            values = []
            for argument in arguments:
                if argument[0] == "range":
                    (top, left), (bottom, right) = _cell_of(argument[1]), _cell_of(argument[2])
                    for row in range(top, bottom + 1):
                        for column in range(left, right + 1):
                            values.append(_number(_evaluate(rows, done, busy, (row, column))))
                else:
                    values.append(_number(_value(rows, done, busy, argument)))
            if name == "SUM":
                return sum(values)
            if name == "MAX":
                return max(values)
            if name == "AVERAGE":
                return sum(values) / len(values)
            raise ValueError("#NAME?")
        case [operator, a, b]:
            left, right = _number(_value(rows, done, busy, a)), _number(_value(rows, done, busy, b))
            if operator == "+":
                return left + right
            if operator == "-":
                return left - right
            if operator == "*":
                return left * right
            return left / right


@example(
    arguments={"path": "s.csv"},
    files={"s.csv": "1,2,=A1+B1*2\n=SUM(A1:C1),=A2/0,=B3\n=A3,=NO(1),x\n"},
    result=[[1.0, 2.0, 5.0], [8.0, "#DIV/0!", "#NAME?"], ["#CYCLE", "#NAME?", "x"]],
)
def evaluate_sheet(path: str) -> list[list]:
    """Evaluate the formulas of a spreadsheet in a CSV file.

    Args:
        path: The CSV file. A cell that begins with = is a formula with + - * /, SUM, MAX and AVERAGE.
    """
    rows = list(csv.reader(io.StringIO(tools.read_file(path=path))))
    done = {}
    return [
        [_evaluate(rows, done, set(), (r, c)) if text else "" for c, text in enumerate(row)] for r, row in enumerate(rows)
    ]
