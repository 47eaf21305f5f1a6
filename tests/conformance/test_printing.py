"""Text of clients is harmless wherever it is shown."""

from __future__ import annotations

import pytest

from conformance.printing import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ström, \N{SNOWMAN}", "plain, ström, \N{SNOWMAN}"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c\u200bd", "a\\u202eb\\u2066c\\u200bd"),
        ("nul \x00, del \x7f", "nul \\x00, del \\x7f"),
        ("two\nlines\r\x85\u2028", "two\\nlines\\r\\x85\\u2028"),
        ("\ud800 alone, \ufffe none", "\\ud800 alone, \\ufffe none"),
    ],
)
def test_what_is_not_printable_is_written_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_line_feeds_are_kept_where_they_are_wanted() -> None:
    assert plain("a\tb\nc\x1b", lines=True) == "a b\nc\\x1b"
