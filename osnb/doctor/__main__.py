"""`python -m osnb.doctor`: the same lines where even the command line's libraries are missing."""

import sys

from osnb.doctor import examine, failed

if __name__ == "__main__":
    lines = examine()
    for line in lines:
        print(f"{line.state:5} {line.name:20} {line.found}")
        if line.advice:
            print(f"{'':26} -> {line.advice}")
    sys.exit(failed(lines))
