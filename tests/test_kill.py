"""SIGKILL at random moments: the run that is started again ends with the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

from osnb import losses, models, train

pytestmark = pytest.mark.slow


class Batches:
    """Six an epoch, each of them said; in the one behind the last of `steps` they wait."""

    def __init__(self, steps):
        self.left = steps
        self.images = torch.rand(96, 3, 16, 16, generator=torch.Generator().manual_seed(1))
        self.labels = torch.randint(-1, 4, (96,), generator=torch.Generator().manual_seed(2))

    def __len__(self):
        return 6

    def __call__(self, epoch, start=0):
        order = torch.randperm(96, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(16)[start:]:
            print("step", flush=True)
            self.left -= 1
            if self.left < 0:
                time.sleep(600)
            yield self.images[rows], self.labels[rows]


def attempt(directory, steps):
    """Begin or go on with a training of 54 steps that keeps a checkpoint after each of them."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = models.resnet9(classes=4, features=16, width=8, dropout=0.3)
    how = {"optimizer": torch.optim.AdamW(model.parameters(), lr=0.01), "schedule": train.triangle}
    how |= {"validate": lambda m: {"best": sum(p.detach().sum().item() for p in m.parameters())}}
    how |= {"directory": directory, "epochs": 9, "seed": 3, "every": 0.0}
    train.fit(model, losses.LOSSES.bind("entropic", weight=1.0), Batches(steps), **how)
    torch.save(model.state_dict(), directory / "end.pt")


def forks():
    """For each line "STEPS FOLDER" a process that makes the attempt: its pid, its steps, its end.

    What takes long is done once: to import torch, and its compiler for the first optimizer.
    """
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])
    for line in sys.stdin:
        steps, directory = line.rstrip("\n").split(maxsplit=1)
        if not (child := os.fork()):
            print(os.getpid(), flush=True)
            attempt(Path(directory), int(steps))
            os._exit(0)
        print("over", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def attempted(process, directory, steps):
    """(steps begun, exit code) of an attempt that is killed in the last of so many steps."""
    print(steps, directory, file=process.stdin, flush=True)
    pid, begun = int(process.stdout.readline()), 0
    while (line := process.stdout.readline()) == "step\n":
        begun += 1
        if begun == steps:
            os.kill(pid, signal.SIGKILL)
    return begun, int(line.removeprefix("over "))


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path, capsys):
    """With a checkpoint after every step, most kills fall on the writing of one."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    attempt(whole, 1000)
    assert capsys.readouterr().out.count("step\n") == 54
    moments, pipe = random.Random(0), subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, __file__], stdin=pipe, stdout=pipe, text=True
    ) as process:
        ends = [attempted(process, killed, moments.randint(3, 12)) for _ in range(6)]
        assert not (killed / "end.pt").exists()
        ends.append(attempted(process, killed, 1000))
    begun, codes = zip(*ends, strict=True)
    assert codes == (*[-signal.SIGKILL] * 6, 0)
    assert sum(begun) <= 54 + 2 * 6  # at most the steps that were not kept yet come again
    for name in ("checkpoint.pt", "best.pt"):
        first, second = (torch.load(f / name, weights_only=True)["model"] for f in (whole, killed))
        assert all(torch.equal(first[key], second[key]) for key in first)
    histories = [pd.read_parquet(folder / "history.parquet") for folder in (whole, killed)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)
    for name in ("history.parquet", "best.pt", "end.pt"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()


if __name__ == "__main__":
    forks()
