"""Do the commands of the page *Your own* to the letter, in a folder: exit codes and seconds.

python -m tests.letter FOLDER    FOLDER is new, or a fresh clone; osnb is the one on the PATH
"""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

PAGE = Path(__file__).parents[1] / "osnb" / "docs" / "your-own.md"


def commands() -> list[str]:
    """The lines of the page's blocks of shell, in order."""
    blocks = PAGE.read_text(encoding="utf8").split("```sh\n")[1:]
    return [line for block in blocks for line in block.partition("```")[0].splitlines()]


def main(folder: Path) -> int:
    """Do them; how many did not end with 0."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k not in ("OSNB_OUT", "PYTHONPATH")}
    failed = 0
    for line in commands():
        if line.startswith("cd "):
            folder /= shlex.split(line)[1]
            continue
        since = time.monotonic()
        done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True)
        print(f"{done.returncode} {time.monotonic() - since:5.0f} s  {line}", flush=True)
        if done.returncode:
            failed += 1
            print(*(done.stdout + done.stderr).splitlines()[-3:], sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
