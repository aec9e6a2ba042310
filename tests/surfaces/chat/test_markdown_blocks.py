"""Markdown that arrives in pieces: which blocks it has, and how hostile text is drawn."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from albert_tools.surfaces.chat.markdown_blocks import Blocks, markdown
from tests.helpers.effort import examples


def divided(pieces: list[str]) -> list[str]:
    blocks = Blocks()
    return [block for piece in pieces for block in blocks.add(piece)] + blocks.end()


def drawn(text: str) -> str:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    console.print(markdown(text))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_block_ends_before_a_line_at_the_left_after_an_empty_line() -> None:
    text = "One\ntwo.\n\nThree.\n\n- a\n\n  more of a\n- b\n\n\n# Four\n"
    assert divided([text]) == ["One\ntwo.\n", "Three.\n", "- a\n\n  more of a\n- b\n\n", "# Four\n"]


@pytest.mark.parametrize("fence", ["```", "~~~~", "  ```"])
def test_code_is_one_block(fence: str) -> None:
    code = f"{fence}py\nx = 1\n\ny = 2\n\n{fence}"
    blocks = divided([f"Code:\n\n{code}\n\nend\n"])
    assert [block for block in blocks if "x = 1" in block and "y = 2" in block and block.count(fence) == 2]
    assert blocks[-1] == "end\n"


@examples(200)
@given(
    text=st.lists(st.sampled_from(["a", "\n", "```", "\n\n", "  ", "- ", "~~~", "#"]), max_size=30).map("".join),
    size=st.integers(1, 9),
)
def test_the_blocks_are_the_same_at_any_split_and_lose_nothing(text: str, size: int) -> None:
    whole = divided([text])
    assert divided([text[at : at + size] for at in range(0, len(text), size)]) == whole
    assert "".join("".join(whole).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("`\x1b[31m`", r"\x1b[31m"),
        ("```\n\x1b[31m\n```", r"\x1b[31m"),
        ("good\u202etxt.exe", r"good\u202etxt.exe"),
        ("[your bank](http://evil.example)", "your bank (http://evil.example)"),
        ("<b>List<int></b>", "<b>List<int></b>"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
        ("&#27;[31m &#x202e; &zwj;", "&#27;[31m &#x202e; &zwj;"),
        ("[a](http://x&#x202e;y)", "a (http://xn--"),
        ("![picture](http://evil.example/p.png)", "picture"),
    ],
)
def test_hostile_text_is_visible_and_has_no_effect(text: str, expected: str) -> None:
    shown = drawn(text)
    assert expected in shown
    assert "\x1b[31m" not in shown
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown
