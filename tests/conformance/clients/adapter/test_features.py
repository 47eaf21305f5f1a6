"""The kits of all languages can do the same things."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from conformance.clients.adapter.features import FEATURES, LANGUAGES
from conformance.clients.adapter.new import LANGUAGES as WRITTEN

#: Callbacks of these languages end with no exception, and return none.
WITHOUT = {"rust"}


def source(language: str) -> str:
    place = files("conformance.clients").joinpath(LANGUAGES[language])
    parts = place.iterdir() if place.is_dir() else [place]
    return "\n".join(part.read_text("utf-8") for part in parts if part.is_file())


def test_there_is_a_kit_for_each_language_that_can_be_written() -> None:
    assert tuple(LANGUAGES) == WRITTEN


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kit_has_what_the_others_have(language: str) -> None:
    text, place = source(language), list(LANGUAGES).index(language)
    missing = [each.what for each in FEATURES if not re.search(rf"\b{each.names[place] or '-'}\b", text)]
    assert missing == []
    without = [each.what for each in FEATURES if not each.names[place]]
    assert without == (["callbacks that raise (exceptions)"] if language in WITHOUT else [])
