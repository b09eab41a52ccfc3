"""A catalogue answers with the right names and hands each function its own settings."""

import pytest

from osnb.catalogue import Catalogue, numbers


def greet(name, *, word, mark="!"):
    return f"{word} {name}{mark}"


CATALOGUE = Catalogue(greet=greet, other=len)


def test_a_miss_lists_the_valid_names():
    with pytest.raises(KeyError, match="'great' is not one of: greet, other"):
        CATALOGUE["great"]


def test_bind_passes_what_the_signature_declares_and_nothing_else():
    assert CATALOGUE.bind("greet", word="hello", epochs=3)("you") == "hello you!"
    assert CATALOGUE.bind("greet", word="hello", mark="?")("you") == "hello you?"


def test_bind_names_a_setting_that_is_missing():
    with pytest.raises(TypeError, match="'greet' needs word"):
        CATALOGUE.bind("greet", mark="?")


def spread(out, labels, *, temperature, margin=1.0):
    """A loss of somebody's own."""


def test_settings_are_numbers_for_keyword_arguments():
    assert numbers("temperature=2 margin=-.5", spread) == {"temperature": 2.0, "margin": -0.5}
    assert numbers("", len) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("temprature=2", "no setting 'temprature'; spread has: temperature, margin"),
        ("out=2", "no setting 'out'; spread has: temperature, margin"),
        ("temperature", "NAME=NUMBER with blanks between; got 'temperature'"),
        ("margin=0,5", "NAME=NUMBER with blanks between; got 'margin=0,5'"),
    ],
)
def test_a_setting_that_nobody_takes_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        numbers(text, spread)
