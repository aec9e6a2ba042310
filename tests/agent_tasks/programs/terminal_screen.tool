import re


def _put(screen: list, row: int, column: int, c: str) -> None:
    while len(screen) <= row:
        screen.append([])
    line = screen[row]
    line.extend(" " * (column + 1 - len(line)))
    line[column] = c


@example(
    arguments={"path": "log"},
    files={"log": "\x1b[1mbuild\x1b[0m\n10%\r50%\r100%\nab\x1b[1Dc\x1b[K\n\x1b]0;title\x07x\by\n"},
    result=["build", "100%", "ac", "y"],
)
def terminal_screen(path: str, width: int = 80) -> list[str]:
    """Return the lines that a terminal shows after a recorded output with carriage returns and escape sequences.

    Args:
        path: The file with the recorded output.
        width: The columns of the terminal.
    """
    text = tools.read_file(path=path)
    screen, row, column = [], 0, 0
    state, parameters = "text", ""
    for c in text:
        if state == "text":
            if c == "\x1b":
                state = "escape"
            elif c == "\n":
                row, column = row + 1, 0
            elif c == "\r":
                column = 0
            elif c == "\b":
                column = max(0, column - 1)
            elif c == "\t":
                column = min(width - 1, (column // 8 + 1) * 8)
            elif c >= " ":
                if column == width:
                    row, column = row + 1, 0
                _put(screen, row, column, c)
                column += 1
        elif state == "escape":
            if c == "[":
                state, parameters = "control", ""
            elif c == "]":
                state = "title"
            else:
                state = "text"
        elif state == "title":
            if c == "\x07":
                state = "text"
            elif c == "\x1b":
                state = "escape"
        elif re.match(r"[0-9;?]", c):
            parameters += c
        else:
            state = "text"
            numbers = [int(p) if p.isdigit() else 0 for p in parameters.split(";")]
            n = max(1, numbers[0])
            if c == "A":
                row = max(0, row - n)
            elif c == "B":
                row += n
            elif c == "C":
                column = min(width - 1, column + n)
            elif c == "D":
                column = max(0, column - n)
            elif c == "G":
                column = n - 1
            elif c in "Hf":
                row, column = n - 1, max(1, (numbers + [1])[1]) - 1
            elif c == "K" and row < len(screen):
                if numbers[0] == 0:
                    del screen[row][column:]
                elif numbers[0] == 1:
                    screen[row][:column + 1] = [" "] * (column + 1)
                else:
                    screen[row] = []
            elif c == "J" and numbers[0] == 2:
                screen = []
    return ["".join(line).rstrip() for line in screen]
