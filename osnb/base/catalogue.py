"""The dictionary that answers."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from osnb.base import user


class Catalogue(dict):
    """Maps names to functions; a miss lists the names that would have worked.

    "module:function" is one in a file of one's own (`osnb.base.user`).
    """

    def __missing__(self, name):
        if ":" in str(name):
            return user.load(name)
        raise KeyError(f"{name!r} is not one of: {', '.join(sorted(self))}")

    def bind(self, name: str, **settings: Any) -> Callable:
        """The function called `name` with those of the settings that its signature declares.

        A signature states what a function needs, so a notebook can offer all its parameters
        and each function takes its own. One that lacks is named by Python, at the call.

        Raises:
            KeyError: no such name; the message lists the valid ones.
        """
        asked = inspect.signature(self[name]).parameters
        return partial(self[name], **{key: settings[key] for key in asked if key in settings})
