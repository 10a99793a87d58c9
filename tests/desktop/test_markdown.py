"""Markdown becomes blocks, and only the last of them moves while a reply is written. Case E05 is here."""

import random

import pytest
from PySide6.QtCore import QUrl
from pytestqt.qtbot import QtBot

from octavo.desktop.theme.look import Look
from octavo.desktop.widgets.answer import AnswerView
from octavo.desktop.widgets.markdown.blocks import (
    Code,
    GrowingText,
    Prose,
    Table,
    blocks_of,
    host_of,
    is_allowed,
)
from octavo.desktop.widgets.markdown.code import CodeBlock
from octavo.desktop.widgets.markdown.prose import ProseView
from octavo.desktop.widgets.markdown.table import TableBlock
from octavo.desktop.widgets.markdown.view import MarkdownView
from octavo.desktop.widgets.question import QuestionView

TEXT = """# Title

A paragraph with **bold**, `code` and [a link](https://example.com/page).

- one
- two
  - three

```python
def f(x):
    return "a" * x  # note
```

| a | b |
|---|--:|
| 1 | 2 |
| 3 | 4 |

> quoted

1. first
2. second

The end.
"""

HOSTILE = """![pixel](http://127.0.0.1:9/track.png)
![local](file:///etc/passwd)
<img src="http://127.0.0.1:9/raw.png"><script>alert(1)</script>
<iframe src="http://127.0.0.1:9/"></iframe>

[click](javascript:alert(1)) [file](file:///etc/passwd) [data](data:text/html,x) [ok](http://127.0.0.1:9/page)

<style>body { background: url(http://127.0.0.1:9/style.png) }</style>

| ![a](http://127.0.0.1:9/cell.png) | <img src=x> |
|---|---|
| ![b](file:///home/me/.ssh/id_rsa) | y |

[ref]: http://127.0.0.1:9/ref
![ref]
"""


def test_a_text_is_cut_into_blocks() -> None:
    kinds = [type(block) for block in blocks_of(TEXT)]
    assert kinds == [Prose, Prose, Prose, Code, Table, Prose, Prose, Prose]
    code, table = blocks_of(TEXT)[3], blocks_of(TEXT)[4]
    assert code == Code("python", 'def f(x):\n    return "a" * x  # note')
    assert table == Table(("a", "b"), (("1", "2"), ("3", "4")), ("", "right"))


@pytest.mark.parametrize("seed", range(20))
def test_a_text_that_grew_ends_as_one_that_came_whole(seed: int) -> None:
    draw = random.Random(seed)
    growing, rest = GrowingText(), TEXT
    while rest:
        cut = draw.randint(1, 12)
        growing.append(rest[:cut])
        rest = rest[cut:]
    growing.finish()
    assert growing.blocks == blocks_of(TEXT)


def test_an_open_fence_is_shown_as_code() -> None:
    growing = GrowingText()
    growing.append("Look:\n\n```py\nfor i in")
    assert growing.blocks[-1] == Code("py", "for i in")


def test_streaming_shows_only_the_last_block_again(qtbot: QtBot, look: Look) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.show_text(TEXT * 20, final=False)
    before, widgets = view.shown_blocks, view.block_widgets
    for number in range(100):
        view.append(f"word{number} ")
    # each piece shows the block that grows; the first one may also close the block before it
    assert view.shown_blocks - before <= 101
    assert view.block_widgets[: len(widgets)] == widgets
    before = view.shown_blocks
    view.finish()
    assert view.shown_blocks - before <= 2


def test_growing_code_keeps_its_widget_and_ends_in_colour(qtbot: QtBot, look: Look) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.append("```python\n")
    for line in ("for i in range(3):\n", "    print(i)\n", "```\n"):
        view.append(line)
    view.finish()
    (block,) = view.block_widgets
    assert isinstance(block, CodeBlock)
    assert block.text == "for i in range(3):\n    print(i)"
    first = block._code.document().firstBlock().layout().formats()
    assert first and first[0].format.foreground().color().name() == look.theme.hex("syntax_keyword").lower()


def test_a_table_writes_only_the_cells_that_changed(qtbot: QtBot, look: Look) -> None:
    table = TableBlock()
    qtbot.addWidget(table)
    table.show_block(Table(("a", "b"), (("1", "2"),), ("", "right")))
    kept = table._cells[(1, 0)]
    table.show_block(Table(("a", "b"), (("1", "2"), ("3", "4")), ("", "right")))
    assert table._cells[(1, 0)] is kept
    assert table._cells[(2, 1)].text() == "4"


def test_text_cannot_forge_html(qtbot: QtBot, look: Look) -> None:
    (block,) = blocks_of("<b onclick='x'>hello</b> & <i>you</i>")
    assert isinstance(block, Prose)
    assert "<b" not in block.html and "&lt;b" in block.html


def test_E05_hostile_markdown_requests_nothing(qtbot: QtBot, look: Look) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    for at in range(0, len(HOSTILE), 7):
        view.append(HOSTILE[at : at + 7])
    view.finish()
    view.grab()
    proses = [widget for widget in view.block_widgets if isinstance(widget, ProseView)]
    assert proses
    for prose in proses:
        assert prose.refused == []
        assert "<img" not in prose.toHtml()
    for cell in view.findChildren(TableBlock)[0]._cells.values():
        assert "<img" not in cell.text()


def test_E05_a_resource_is_refused_even_if_html_named_one(qtbot: QtBot, look: Look) -> None:
    prose = ProseView()
    qtbot.addWidget(prose)
    prose.resize(300, 100)
    prose.show()
    prose.show_html('<p><img src="http://127.0.0.1:9/x.png"><img src="file:///etc/passwd"></p>')
    prose.grab()
    assert {"http://127.0.0.1:9/x.png", "file:///etc/passwd"} <= set(prose.refused)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://example.com/a", True),
        ("http://127.0.0.1:9/", True),
        ("mailto:me@example.com", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("data:text/html,x", False),
        ("//example.com", False),
        ("https:///nothing", False),
        ("http://[broken", False),
        ("ftp://example.com", False),
    ],
)
def test_E05_only_web_and_mail_links_are_offered(address: str, allowed: bool) -> None:
    assert is_allowed(address) is allowed


def test_E05_a_link_shows_its_host_and_only_asks(qtbot: QtBot, look: Look) -> None:
    (block,) = blocks_of("[your bank](https://evil.example/login)")
    assert isinstance(block, Prose)
    assert "(evil.example)" in block.html
    assert host_of("mailto:me@example.com") == "me@example.com"
    prose = ProseView()
    qtbot.addWidget(prose)
    with qtbot.waitSignal(prose.link_wanted) as asked:
        prose.anchorClicked.emit(QUrl("https://evil.example/login"))
    assert asked.args == ["https://evil.example/login"]
    with qtbot.assertNotEmitted(prose.link_wanted):
        prose.anchorClicked.emit(QUrl("file:///etc/passwd"))


def test_text_of_both_directions_and_no_spaces_is_laid_out(qtbot: QtBot, look: Look) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show()
    view.show_text("שלום עולם " * 20 + "\n\n" + "漢字" * 200 + "\n\n" + "x" * 5000)
    view.grab()
    assert all(widget.height() > 20 for widget in view.block_widgets)


def test_a_question_of_a_megabyte_is_shown_in_part(qtbot: QtBot, look: Look) -> None:
    question = QuestionView("x" * 1_000_000)
    qtbot.addWidget(question)
    question.resize(600, 200)
    question.show()
    question.grab()
    assert len(question._shown.toPlainText()) == 4000
    assert question.text == "x" * 1_000_000


def test_the_line_under_an_answer_keeps_its_height(qtbot: QtBot, look: Look) -> None:
    from octavo.core.chats.types import ChatMessage

    answer = AnswerView()
    qtbot.addWidget(answer)
    answer.resize(600, 300)
    answer.show()
    answer.begin()
    answer.append("Hello there", 2)
    qtbot.wait(1)
    writing = answer.sizeHint().height()
    answer.end(ChatMessage(id="m", role="assistant", content="Hello there", created=0.0))
    assert answer.sizeHint().height() == writing
