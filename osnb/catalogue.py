"""The dictionary that answers."""


class Catalogue(dict):
    """Maps names to functions; a miss lists the names that would have worked."""

    def __missing__(self, name):
        raise KeyError(f"{name!r} is not one of: {', '.join(sorted(self))}")
