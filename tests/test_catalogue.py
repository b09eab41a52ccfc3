"""A catalogue answers with the right names and hands each function its own settings."""

import pytest

from osnb.base.catalogue import Catalogue


def greet(name, *, word, mark="!"):
    return f"{word} {name}{mark}"


CATALOGUE = Catalogue(greet=greet, other=len)


def test_a_miss_lists_the_valid_names():
    with pytest.raises(KeyError, match="'great' is not one of: greet, other"):
        CATALOGUE["great"]


def test_bind_passes_what_the_signature_declares_and_nothing_else():
    assert CATALOGUE.bind("greet", word="hello", epochs=3)("you") == "hello you!"
    assert CATALOGUE.bind("greet", word="hello", mark="?")("you") == "hello you?"


def test_a_setting_that_is_missing_is_named():
    with pytest.raises(TypeError, match=r"missing .* 'word'"):
        CATALOGUE.bind("greet", mark="?")("you")
