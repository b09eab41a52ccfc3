"""The dictionary that answers."""

import inspect
from collections.abc import Callable
from functools import partial


class Catalogue(dict):
    """Maps names to functions; a miss lists the names that would have worked."""

    def __missing__(self, name):
        raise KeyError(f"{name!r} is not one of: {', '.join(sorted(self))}")

    def bind(self, name: str, **settings) -> Callable:
        """The function called `name` with those of the settings that its signature declares.

        A signature states what a function needs, so a notebook can offer all its parameters
        and each function takes its own. One that lacks is named by Python, at the call.

        Raises:
            KeyError: no such name; the message lists the valid ones.
        """
        asked = inspect.signature(self[name]).parameters
        return partial(self[name], **{key: settings[key] for key in asked if key in settings})
