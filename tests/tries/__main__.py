"""The table of the tries: how many of which kind, how many were not answered well, and which."""

import importlib
import json
import os
import resource
import sys
import tempfile

from tests.tries import KINDS

SPACE = 24 << 30  # bytes of addresses: what reads without end ends here, not the machine


def main(kinds: list[str]) -> int:
    """0 if all was answered well, 1 otherwise."""
    if wrong := {*kinds} - {*KINDS}:
        sys.exit(f"no such kind: {', '.join(sorted(wrong))}; there are: {', '.join(KINDS)}")
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    faults = 0
    with tempfile.TemporaryDirectory(prefix="tries-") as place:
        os.environ |= {"TMPDIR": place, "OMP_NUM_THREADS": "1"}
        tempfile.tempdir = place
        for kind in kinds or KINDS:
            found = [*importlib.import_module(f"tests.tries.{kind}").tries()]
            bad = {name: why for name, why in found if why}
            faults += len(bad)
            print(json.dumps({"kind": kind, "tried": len(found), "not ok": len(bad)}), flush=True)
            for name, why in bad.items():
                print(f"  {name}: {why!r}", flush=True)
    return min(faults, 1)


sys.exit(main(sys.argv[1:]))
