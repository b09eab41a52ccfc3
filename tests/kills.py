"""SIGKILLs at random moments of real trainings: python -m tests.kills. Part of make audit.

A miniature is trained serially, by two workers, and on two devices, each in a folder of its own. A
kill takes `osnb` itself, or now and then one of the processes that it has started; then the same
command is said again, until all is done. After every kill all processes of the folder have to end
within ten seconds, by which its locks are free. What is done was done once, with the bytes of runs
that nobody disturbed, and nothing else lies about. Then the folder is emptied, and all begins anew.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import torch
from filelock import FileLock, Timeout

from osnb.base import workbook
from osnb.book import record
from osnb.train import checkpoint

ENDS = 10  # seconds in which everything of a killed command has to end
TAKEN = (".parquet", "best.pt", ".csv")  # what has equal bytes; beside it lie times and versions
HELD = ("checkpoint.pt", "previous.pt")  # what has equal entries
CACHES = ("torchinductor_", "dask-scratch-space")  # of torch and dask, which stay for the next
FILE = "params/12_palechor_train/mini_p1_softmax.yaml"
LONG = "rules=plain epochs=16 width=8 train_per_class=30"  # more epochs of a smaller training
MODES = {
    "serial": (FILE,),
    "two workers": (FILE, "--seeds", "2", "--workers", "2"),
    "two devices": (FILE, "-p", "devices=2"),
}


class Killed:
    """The folder in which one command is said, killed, and said again.

    Args:
        mode: a name in `MODES`.
        folder: to make; runs/, and all temporary files, lie in it.
    """

    def __init__(self, mode: str, folder: Path):
        self.words, self.folder, self.temporary = MODES[mode], folder, folder / "temporary"
        self.temporary.mkdir(parents=True)
        self.faults = []

    def start(self) -> subprocess.Popen:
        """The command, which leads a group of its own."""
        command = [sys.executable, "-c", "from osnb.book.cli import app; app()", "run", *self.words]
        own = {"OSNB_OUT": str(self.folder), "TMPDIR": str(self.temporary)}
        command += ["-p", f"overrides={LONG}"]
        with (self.folder / "said.txt").open("a") as said:
            pipes = {"stdout": said, "stderr": said}
            return subprocess.Popen(command, cwd=workbook.root(), env=os.environ | own, **pipes)

    def processes(self) -> list[psutil.Process]:
        """All that work for this folder, whoever their parents are."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("OSNB_OUT") == str(self.folder):
                    found.append(process)
        return found

    def states(self) -> Counter:
        """How many runs are in which state."""
        files = (self.folder / "runs").glob("*/*/run.json")
        return Counter((record.read(file.parent) or {}).get("state") for file in files)

    def digests(self) -> dict[str, str]:
        """By name: sha256 of files, and of entries of checkpoints; of all others nothing."""
        files = sorted(file for file in (self.folder / "runs").rglob("*") if file.is_file())
        told = {}
        for file in (file for file in files if ".ipython" not in file.parts):
            name = str(file.relative_to(self.folder))
            told[name] = workbook.file_hash(file) if file.name.endswith(TAKEN) else ""
            if file.name in HELD:
                told |= entries(name, checkpoint.load(file))
        return told

    def spare(self) -> list[str]:
        """What lies in the temporary folder."""
        return [f.name for f in self.temporary.iterdir() if not f.name.startswith(CACHES)]

    def free(self) -> bool:
        """Whether nobody holds a lock."""
        for file in (self.folder / "runs" / ".locks").rglob("*.lock"):
            with suppress(Timeout), FileLock(file, 0):
                continue
            return False
        return True

    def end(self, why: str) -> float:
        """Seconds until all processes had ended; a fault, if too many, or if a lock is held."""
        began = time.monotonic()
        while (left := self.processes()) and time.monotonic() - began < ENDS:
            time.sleep(0.05)
        spent = time.monotonic() - began
        if left:
            self.faults.append(f"{why}: after {ENDS} s there is {left}")
        elif not self.free():
            self.faults.append(f"{why}: a lock is held")
        elif spare := self.spare():
            self.faults.append(f"{why}: in the temporary folder lie {spare}")
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        for name in self.spare():  # so that each is told once
            shutil.rmtree(self.temporary / name, ignore_errors=True)
        return spent

    def over(self, whole: dict[str, str]) -> None:
        """Hold what is done against what runs that nobody disturbed have left; empty the folder."""
        for file in (self.folder / "runs").glob("*/*/run.json"):
            said = record.read(file.parent)
            done = [each["state"] for each in (*said.get("attempts", ()), said)].count("done")
            if done != 1:
                self.faults.append(f"{file.parent.name} was done {done} times")
        here = self.digests()
        if other := sorted({*here.items()} ^ {*whole.items()}):
            self.faults.append(f"other files or bytes: {sorted({name for name, _ in other})}")
        shutil.rmtree(self.folder / "runs")


def entries(place: str, value) -> dict[str, str]:
    """By its place: what a state holds. Its bytes say too which texts are one object."""
    if isinstance(value, dict):
        value = [*value.items()]
    elif isinstance(value, list) and any(isinstance(x, dict | torch.Tensor) for x in value):
        value = [*enumerate(value)]
    elif isinstance(value, torch.Tensor):
        return {place: workbook.digest(f"{value.dtype} {value.shape}", value.numpy().tobytes())}
    else:
        return {place: workbook.digest(repr(value))}
    parts = [entries(f"{place}:{name}", part) for name, part in value]
    return {name: digest for part in parts for name, digest in part.items()}


def hit(killed: Killed, draw: random.Random, life: float, within: float) -> tuple | None:
    """Start the command and kill it once; the state it was in and the seconds until all was over.

    Three of four kills come while a run is being made, however long its beginning takes.

    Args:
        killed: what to kill.
        draw: when, and whom.
        life: seconds that the command takes.
        within: seconds of them in which runs are made; 0: do not kill.

    Returns:
        None if it ended before: all is done.
    """
    process, most = killed.start(), life if draw.random() < 0.25 else within
    while within and most == within and process.poll() is None and not killed.states()["running"]:
        time.sleep(0.2)
    try:
        code = process.wait(draw.uniform(0, most) if within else None)
    except subprocess.TimeoutExpired:
        victim, state = process, "middle" if killed.states()["running"] else "before or after"
        if draw.random() < 0.25 and (started := psutil.Process(process.pid).children(True)):
            victim, state = draw.choice(started), state + ", one that it started"
        with suppress(psutil.NoSuchProcess):
            victim.kill()
        code = process.wait()
        return state, killed.end(f"{state}, with code {code}")
    if code:
        killed.faults.append(f"ended with code {code}")
    return None


def whole(mode: str, folder: Path) -> tuple[dict[str, str], float, float]:
    """What a command that nobody disturbs leaves, the seconds it takes, and those of a run."""
    alone, began = Killed(mode, folder), time.monotonic()
    if code := alone.start().wait():
        sys.exit(f"{mode} ended with code {code}: {(folder / 'said.txt').read_text()}")
    life = time.monotonic() - began
    alone.end("undisturbed")
    runs = (record.read(file.parent) for file in (folder / "runs").glob("*/*/run.json"))
    return alone.digests(), life, max(run["seconds"] for run in runs)


def main(kills: int, seconds: float, seed: int) -> int:
    """Kill so often, or for so long; the number of faults."""
    draw, began, slowest = random.Random(seed), time.monotonic(), 0.0
    counted, rounds, faults = Counter(), Counter(), []
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        sound = {mode: whole(mode, Path(name) / mode / "whole") for mode in MODES}
        killed = {mode: Killed(mode, Path(name) / mode / "killed") for mode in MODES}
        while counted.total() < kills and time.monotonic() - began < seconds:
            mode = min(MODES, key=lambda mode: sum(n for (m, _), n in counted.items() if m == mode))
            done = False
            while not done:  # to the end of a round, by kills or without
                left = kills - counted.total()
                late = left <= 0 or time.monotonic() - began > seconds
                digests, life, within = sound[mode]
                struck = hit(killed[mode], draw, life, 0 if late else within)
                if done := struck is None:
                    killed[mode].over(digests)
                    rounds[mode] += 1
                else:
                    counted[mode, struck[0]] += 1
                    slowest = max(slowest, struck[1])
        faults = [f"{mode}: {fault}" for mode, each in killed.items() for fault in each.faults]
    told = {"kills": {f"{mode}: {state}": n for (mode, state), n in sorted(counted.items())}}
    told |= {"in all": counted.total(), "rounds made to their end": rounds}
    told |= {"slowest end, s": round(slowest, 2), "seed": seed, "faults": faults}
    print(json.dumps(told, indent=1))
    return len(faults)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--seconds", type=float, default=3600)
    asked.add_argument("--seed", type=int, default=0)
    sys.exit(min(main(**vars(asked.parse_args())), 1))
