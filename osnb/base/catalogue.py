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
        and each function takes its own.

        Raises:
            KeyError: no such name; the message lists the valid ones.
            TypeError: a keyword-only argument without a default is not among the settings.
        """
        asked = inspect.signature(self[name]).parameters
        needed = [
            key
            for key, parameter in asked.items()
            if parameter.kind is parameter.KEYWORD_ONLY
            and parameter.default is parameter.empty
            and key not in settings
        ]
        if needed:
            raise TypeError(f"{name!r} needs {', '.join(needed)}")
        return partial(self[name], **{key: settings[key] for key in asked if key in settings})
