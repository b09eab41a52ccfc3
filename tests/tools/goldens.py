"""Write the goldens anew that have changed: python -m tests.tools.goldens, or make golden."""

import argparse

from osnb.base import workbook
from osnb.book import follows, goldens


def renew() -> list[str]:
    """Write the goldens that the code does not agree with; gives their names."""
    found, changed = {}, []
    for name in goldens.names():
        kind, _, short = name.partition("/")
        golden, new = goldens.kept(name), goldens.rehearsed(name)
        if not goldens.agrees(golden, new, name):
            golden, changed = new, [*changed, name]
        found.setdefault(kind, {})[short] = golden
    for kind, kept in found.items():
        workbook.write_json(follows.held().with_name(f"{kind}.json"), kept)
    follows.note(afresh=bool(changed))
    return changed


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()  # --help changes nothing
    changed = renew()
    print(*changed, f"{len(changed)} of {len(goldens.names())} goldens written anew", sep="\n")
