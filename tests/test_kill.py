"""SIGKILL at random moments: the run that is started again ends with the same bytes."""

import random
import signal
import subprocess
import sys

import pandas as pd
import pytest
import torch

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time, torch
from pathlib import Path
from osnb import losses, models, train

torch.set_num_threads(1)
images = torch.rand(96, 3, 16, 16, generator=torch.Generator().manual_seed(1))
labels = torch.randint(-1, 4, (96,), generator=torch.Generator().manual_seed(2))

class Batches:
    left = int(sys.argv[2])
    def __len__(self):
        return 6
    def __call__(self, epoch, start=0):
        order = torch.randperm(96, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(16)[start:]:
            print("step", flush=True)
            self.left -= 1
            if self.left < 0:
                time.sleep(600)  # to be killed, if it is not yet
            yield images[rows], labels[rows]

torch.manual_seed(0)
model = models.resnet9(classes=4, features=16, width=8, dropout=0.3)
train.fit(
    model, losses.LOSSES.bind("entropic", weight=1.0), Batches(), epochs=9,
    optimizer=torch.optim.AdamW(model.parameters(), lr=0.01), schedule=train.triangle,
    validate=lambda m: {"best": sum(p.detach().sum().item() for p in m.parameters())},
    directory=Path(sys.argv[1]), seed=3, every=0.0,
)
torch.save(model.state_dict(), Path(sys.argv[1]) / "end.pt")
"""


def started(directory, steps=1000):
    """A training that begins one step more than so many, and waits in it."""
    command = [sys.executable, "-c", SCRIPT, str(directory), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    """With a checkpoint after every step, most kills fall on the writing of one."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with started(whole) as process:
        assert process.communicate()[0].count("step") == 54
    moments, kills, steps = random.Random(0), 0, []
    while not (killed / "end.pt").exists():
        last = moments.randint(3, 12) if kills < 6 else 1000
        with started(killed, last) as process:
            seen = 0
            for _ in process.stdout:
                seen += 1
                if seen == last:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
            steps.append(seen)
    assert kills == 6
    assert len(steps) == 7
    assert sum(steps) <= 54 + 2 * kills  # at most the steps that were not kept yet come again
    for name in ("checkpoint.pt", "best.pt"):
        first, second = (torch.load(f / name, weights_only=True)["model"] for f in (whole, killed))
        assert all(torch.equal(first[key], second[key]) for key in first)
    histories = [pd.read_parquet(folder / "history.parquet") for folder in (whole, killed)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)
    for name in ("history.parquet", "best.pt", "end.pt"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
