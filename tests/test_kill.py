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
import sys, torch
from pathlib import Path
from osnb import losses, models, train

torch.set_num_threads(1)
images = torch.rand(96, 3, 16, 16, generator=torch.Generator().manual_seed(1))
labels = torch.randint(-1, 4, (96,), generator=torch.Generator().manual_seed(2))

class Batches:
    def __len__(self):
        return 6
    def __call__(self, epoch, start=0):
        order = torch.randperm(96, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(16)[start:]:
            print("step", flush=True)
            yield images[rows], labels[rows]

torch.manual_seed(0)
model = models.resnet9(classes=4, features=16, width=8, dropout=0.3)
train.fit(
    model, losses.LOSSES.bind("entropic", weight=1.0), Batches(), epochs=8,
    optimizer=torch.optim.AdamW(model.parameters(), lr=0.01), schedule=train.triangle,
    validate=lambda m: {"best": sum(p.detach().sum().item() for p in m.parameters())},
    directory=Path(sys.argv[1]), seed=3, every=0.0,
)
torch.save(model.state_dict(), Path(sys.argv[1]) / "end.pt")
"""


def started(directory):
    command = [sys.executable, "-c", SCRIPT, str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    """With a checkpoint after every step, most kills fall on the writing of one."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with started(whole) as process:
        assert process.communicate()[0].count("step") == 48
    moments, kills, steps = random.Random(0), 0, []
    while not (killed / "end.pt").exists():
        with started(killed) as process:
            seen, last = 0, moments.randint(3, 12)
            for _ in process.stdout:
                seen += 1
                if seen == last and kills < 6:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
            steps.append(seen)
    assert kills == 6
    assert len(steps) == 7
    assert sum(steps) <= 48 + 2 * kills  # at most the steps that were not kept yet come again
    for name in ("checkpoint.pt", "best.pt"):
        first, second = (torch.load(f / name, weights_only=True)["model"] for f in (whole, killed))
        assert all(torch.equal(first[key], second[key]) for key in first)
    histories = [pd.read_parquet(folder / "history.parquet") for folder in (whole, killed)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)
    for name in ("history.parquet", "best.pt", "end.pt"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
