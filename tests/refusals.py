"""What all commands that refuse have in common."""

from test_cli import osnb


def refused(*words):
    """The one sentence with which `osnb WORDS` refuses: exit code 2, and nothing is printed."""
    code, out, err = osnb(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("osnb: ")
    return err
