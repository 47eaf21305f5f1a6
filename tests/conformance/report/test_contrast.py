"""Text can be read in both themes: contrast of at least 4.5 to 1 (WCAG 2.1, 1.4.3, level AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

SHEETS = [files("conformance.report").joinpath(f"templates/{name}.css") for name in ("style", "tables")]
CSS = "\n".join(sheet.read_text(encoding="utf-8") for sheet in SHEETS)
AA = 4.5
#: Backgrounds that text without one of its own may stand on.
GROUNDS = ("paper", "ground")
ON_GROUNDS = ("ink", "soft", "faint", "accent", "pass", "fail", "loose", "unsure", "harness", "skip")
#: Text on a background of its own, as the rules of the style sheet pair them.
PAIRS = (
    *((name, f"{name}-soft") for name in ("pass", "fail", "loose", "unsure", "harness", "skip", "accent")),
    ("soft", "skip-soft"),  # .tag
    ("ink", "loose-soft"),  # .note
    ("paper", "accent"),  # .mark
)


def theme(start: str) -> dict[str, str]:
    """The variables of the first rule whose selector is `start`."""
    body = CSS[CSS.index(start) + len(start) :].partition("}")[0]
    return dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]{6})", body))


THEMES = {"light": theme(":root {"), "dark": theme(':root[data-theme="dark"] {')}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it; 0 is black, 1 is white."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_measure() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # just not enough


def test_the_dark_theme_is_the_same_by_choice_and_by_preference() -> None:
    assert theme(':root:not([data-theme="light"]) {') == THEMES["dark"]
    assert THEMES["dark"].keys() == THEMES["light"].keys()


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize(
    ("text", "ground"),
    [*((text, ground) for text in ON_GROUNDS for ground in GROUNDS), *PAIRS],
    ids=str,
)
def test_text_can_be_read(name: str, text: str, ground: str) -> None:
    colours = THEMES[name]
    assert contrast(colours[text], colours[ground]) >= AA


def test_no_rule_sets_text_in_a_colour_of_its_own() -> None:
    """What the test above does not see would be a colour outside of the variables, or transparency."""
    rules = CSS[CSS.index("* { box-sizing") :]
    assert not re.findall(r"#[0-9a-f]{3,8}\b(?=[;} ])", rules)
    assert not re.findall(r"\bopacity:", rules)
    used = set(re.findall(r"(?<![-\w])(?:color|fill): var\(--([a-z0-9-]+)\)", rules))
    lines = {f"k{number}" for number in range(8)}  # curves and swatches: graphics, not text
    assert used - lines <= {*ON_GROUNDS, "paper"}
