"""The loop against a loop written out, continuing against not stopping, and what is refused."""

import errno
import gc
import math
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from trained import Shuffled, weights

from osnb import losses, models, train
from osnb.train import checkpoint

IMAGES = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(1))
LABELS = torch.randint(-1, 3, (50,), generator=torch.Generator().manual_seed(2))
LOSS = losses.LOSSES.bind("entropic", weight=1.0)


batches = Shuffled(IMAGES, LABELS, 16)


def in_order(_):
    return [(IMAGES[start : start + 16], LABELS[start : start + 16]) for start in (0, 16, 32, 48)]


def new_model():
    torch.manual_seed(3)
    model = models.mlp(classes=3, features=8)
    model.trunk.append(torch.nn.Dropout(0.2))  # so that random numbers inside the net matter
    return model


def fit(model, directory, **changes):
    settings = {
        "epochs": 4,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.01),
        "schedule": train.cosine,
        "validate": lambda model: {"size": sum(p.detach().abs().sum() for p in model.parameters())},
        "directory": directory,
        "seed": 5,
    }
    given = {"loss": LOSS, "batches": batches} | settings | changes
    return train.fit(model, **given)


def test_fit_is_the_plain_loop(tmp_path):
    model = new_model()
    model.trunk[-1].p = 0.0
    history = fit(model, tmp_path, schedule=train.constant, epochs=2)
    torch.manual_seed(3)
    other = models.mlp(classes=3, features=8)
    optimizer, means = torch.optim.Adam(other.parameters(), lr=0.01), []
    for epoch in (1, 2):
        values = []
        for images, labels in batches(epoch):
            loss = LOSS(other(images), labels)
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
            values += loss.tolist()
        means.append(np.mean(values))
    assert torch.equal(weights(model), weights(other))
    assert history["loss"].tolist() == pytest.approx(means, rel=1e-6)


def scripted(values):
    """A `validate` that reports the values in turn and remembers each epoch's weights."""
    seen = []

    def validate(model):
        seen.append(weights(model))
        return {"best": values[len(seen) - 1]}

    return validate, seen


def test_best_is_the_first_epoch_with_the_largest_value(tmp_path):
    validate, seen = scripted([0.1, 0.7, 0.7, 0.2])
    model = new_model()
    fit(model, tmp_path, validate=validate)
    assert torch.equal(weights(train.best(model, tmp_path)), seen[1])
    assert torch.equal(weights(model), seen[3])


def test_best_without_a_best_epoch_is_refused(tmp_path):
    model = new_model()
    fit(model, tmp_path, epochs=1)
    with pytest.raises(FileNotFoundError, match="'best'"):
        train.best(model, tmp_path)


def test_patience_stops_after_so_many_epochs_without_a_better_one(tmp_path):
    validate, seen = scripted([0.5, 0.6, 0.6, 0.1, 0.9, 0.9])
    assert len(fit(new_model(), tmp_path, validate=validate, epochs=6, patience=2)) == 4
    assert len(seen) == 4


def test_a_loss_that_is_not_finite_stops_with_the_epoch_and_keeps_the_one_before(tmp_path):
    model = new_model()

    def break_it(model):
        if break_it.armed:
            with torch.no_grad():
                next(model.parameters()).fill_(float("nan"))
        break_it.armed = True
        return {}

    break_it.armed = False
    with pytest.raises(FloatingPointError, match=r"step 1 of epoch 3: lower the learning"):
        fit(model, tmp_path, validate=break_it)
    assert len(pd.read_parquet(tmp_path / "history.parquet")) == 2


def test_weights_that_are_not_finite_are_not_kept_within_an_epoch(tmp_path):
    def loss(out, labels):
        loss.steps += 1
        return out.logits.sum(dim=1) * (float("nan") if loss.steps > 2 else 1e-3)

    loss.steps = 0
    with pytest.raises(FloatingPointError, match=r"step 3 of epoch 1: [^;]*\)$"):  # none is kept
        fit(new_model(), tmp_path, loss=loss, every=0.0)
    for name in ("checkpoint.pt", "previous.pt"):
        state = checkpoint.load(tmp_path / name)
        assert all(x.isfinite().all() for x in state["model"].values())


def damaged(file, how):
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(
        {
            "truncated": content[:1000],
            "empty": b"",
            "a byte turned": content[:middle]
            + bytes([content[middle] ^ 1])
            + content[middle + 1 :],
            "without its checksum": content[:-32],
            "another file": b"not a checkpoint" * 100,
        }[how]
    )


DAMAGES = ["truncated", "empty", "a byte turned", "without its checksum", "another file"]


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(tmp_path, how):
    straight = new_model()
    history = fit(straight, tmp_path / "whole")
    fit(new_model(), tmp_path / "broken", epochs=4, patience=np.inf)
    damaged(tmp_path / "broken" / "checkpoint.pt", how)
    model = new_model()
    with pytest.warns(UserWarning, match=r"checkpoint\.pt is truncated.*the one before it"):
        again = fit(model, tmp_path / "broken")
    assert torch.equal(weights(model), weights(straight))
    pd.testing.assert_frame_equal(again, history)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_with_none_before_it_is_named(tmp_path, how):
    fit(new_model(), tmp_path, epochs=1)
    damaged(tmp_path / "checkpoint.pt", how)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is truncated.*remove it"):
        fit(new_model(), tmp_path)


@pytest.mark.parametrize("nth", range(1, 7))
def test_a_kill_at_any_file_operation_leaves_a_whole_checkpoint(tmp_path, monkeypatch, nth):
    """Stop before the nth rename or write; the folder still holds the old state or the new one."""
    checkpoint.keep({"step": 1}, tmp_path)
    checkpoint.keep({"step": 2}, tmp_path)
    calls = []

    def counted(operation):
        def called(*args, **settings):
            calls.append(operation)
            if len(calls) == nth:
                raise KeyboardInterrupt
            return operation(*args, **settings)

        return called

    for name in ("replace", "write_bytes", "open"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
    with suppress(KeyboardInterrupt):
        checkpoint.keep({"step": 3}, tmp_path)
    monkeypatch.undo()
    assert checkpoint.newest(tmp_path)["step"] in ({2, 3} if nth < 7 else {3})
    checkpoint.keep({"step": 4}, tmp_path)
    assert checkpoint.newest(tmp_path)["step"] == 4


class Stopping(Shuffled):
    """Batches that interrupt this process when the nth of them is asked for."""

    def __init__(self, after):
        super().__init__(IMAGES, LABELS, 16)
        self.after, self.calls = after, 0

    def __call__(self, epoch, start=0):
        for batch in super().__call__(epoch, start):
            self.calls += 1
            if self.calls == self.after:
                signal.raise_signal(signal.SIGINT)
            yield batch


@pytest.mark.parametrize("after", [1, 3, 4, 5, 10])
def test_an_interrupt_finishes_its_step_keeps_it_and_the_next_run_goes_on_from_there(
    tmp_path, after
):
    straight = new_model()
    history = fit(straight, tmp_path / "whole")
    step, epoch = (after - 1) % 4 + 1, (after - 1) // 4 + 1
    with pytest.raises(KeyboardInterrupt, match=f"kept after step {step} of epoch {epoch}"):
        fit(new_model(), tmp_path / "stopped", batches=Stopping(after))
    state = checkpoint.newest(tmp_path / "stopped")
    assert (state["step"], len(state["history"])) == (step, epoch - 1)
    model, rest = new_model(), Stopping(0)
    again = fit(model, tmp_path / "stopped", batches=rest)
    assert rest.calls == 16 - after
    assert torch.equal(weights(model), weights(straight))
    pd.testing.assert_frame_equal(again, history)


def test_checkpoints_within_an_epoch_change_no_number(tmp_path):
    straight, often = new_model(), new_model()
    history = fit(straight, tmp_path / "a")
    pd.testing.assert_frame_equal(fit(often, tmp_path / "b", every=0.0), history)
    assert torch.equal(weights(often), weights(straight))


def test_random_states_of_other_libraries_survive_an_interrupt(tmp_path):
    """A loss that draws from Python's and numpy's global generators."""

    def drawing(out, labels):
        return LOSS(out, labels) * (1 + random.random() + np.random.random())  # noqa: NPY002

    losses = []
    for folder, stops in (("whole", [0]), ("stopped", [6, 0])):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        for stop in stops:
            try:
                how = {"loss": drawing, "batches": Stopping(stop)}
                history = fit(new_model(), tmp_path / folder, **how)
            except KeyboardInterrupt:
                random.seed(2)
                np.random.seed(2)  # noqa: NPY002
        losses.append(history["loss"].tolist())
    assert losses[0] == losses[1]


def full_disk(folder, monkeypatch):
    """The error of a training that goes on in a folder where there is no space left."""

    def full(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="disk was full after step 4 of epoch 2") as caught:
        fit(new_model(), folder)
    assert caught.value.errno == errno.ENOSPC


def test_no_space_left_says_at_which_step_and_keeps_what_was_there(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        fit(new_model(), tmp_path, batches=Stopping(8))
    before = (tmp_path / "checkpoint.pt").read_bytes()
    full_disk(tmp_path, monkeypatch)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    gc.collect()  # what was left open complains here, and not in whichever test comes next


def test_a_step_that_needs_too_much_memory_says_which_and_what_to_change(tmp_path):
    def loss(out, labels):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 TB")

    with pytest.raises(MemoryError, match=r"step 1 of epoch 1 with 16 images.*lower batch_size"):
        fit(new_model(), tmp_path, loss=loss)


def test_predict_keeps_the_order_and_turns_dropout_off():
    model = new_model().train()
    out = train.predict(model, in_order)
    again = train.predict(model, in_order)
    with torch.no_grad():
        expected = model.eval()(IMAGES)
    np.testing.assert_allclose(out.logits, expected.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out.features, again.features)
    assert out.logits.dtype == out.features.dtype == np.float32


def test_a_network_that_gives_no_features_has_none():
    model = new_model()
    whole = model.forward
    model.forward = lambda images: whole(images)._replace(features=())
    out = train.predict(model, in_order)
    assert out.features == ()
    assert out.logits.shape == (50, 3)


def test_a_network_that_gives_logits_alone_is_refused():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    with pytest.raises(ValueError, match=r"need Outputs.* got Tensor"):
        train.predict(model, lambda _: [(IMAGES[:2], LABELS[:2])])


def test_a_mirrored_answer_is_the_mean_of_two():
    torch.manual_seed(0)
    model = models.conv(classes=3, width=4, features=5)
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(3))
    of = lambda x: lambda _: [(x[:4], None), (x[4:], None)]  # noqa: E731
    found = train.mirrored(model, of(images))
    one, other = (train.predict(model, of(x)) for x in (images, images.flip(3)))
    for part in ("logits", "features"):
        mean = (getattr(one, part) + getattr(other, part)) / 2
        np.testing.assert_allclose(getattr(found, part), mean, rtol=1e-5, atol=1e-6)
    assert not np.allclose(one.logits, other.logits, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", train.SCHEDULES)
def test_a_schedule_stays_within_0_and_1(name):
    values = [train.SCHEDULES[name](step / 100) for step in range(100)]
    assert all(0 <= value <= 1 for value in values)
    assert all(value > 0 for value in values[1:])


@pytest.mark.parametrize(
    ("name", "epochs", "edges"),
    [("steps_60_80", 200, (120, 160)), ("steps_33_67", 90, (30, 60)), ("steps_60_80", 5, (3, 4))],
)
@pytest.mark.parametrize("steps", [1, 7, 141])
def test_steps_are_the_rates_of_torchs_scheduler_stepped_once_per_epoch(name, epochs, edges, steps):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=edges, gamma=0.1)
    for epoch in range(epochs):
        shares = [(epoch + step / steps) / epochs for step in range(steps)]  # as train_on has it
        found = [0.1 * train.SCHEDULES[name](done) for done in shares]
        assert found == pytest.approx([optimizer.param_groups[0]["lr"]] * steps)
        optimizer.step()
        scheduler.step()


def slow_released(rate, epochs=600):
    """The rates of the released scheduler, whose step comes after the epoch: one late."""
    least, cycle = rate * 1e-3, epochs // 3
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate)
    cosine = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        optimizer, T_0=cycle, eta_min=least
    )
    target = least + (rate - least) * (1 + math.cos(math.pi * 10 / cycle)) / 2
    current, used = least, []
    for epoch in range(epochs):
        used.append(current)
        cosine.step(epoch)
        rising = least + (target - least) / 10 * (epoch + 1)
        current = rising if epoch < 10 else optimizer.param_groups[0]["lr"]
    return used


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step|.*epoch parameter")
def test_warm_restarts_released_are_the_rates_that_the_released_scheduler_used():
    used = slow_released(0.1)
    for steps, step in ((1, 0), (157, 0), (157, 156)):
        ours = [
            0.1 * train.warm_restarts_released((number - 1 + step / steps) / 600)
            for number in range(1, 601)
        ]
        assert ours == pytest.approx(used, rel=1e-9)
    table = {0: 0.001, 10: 0.99385, 11: 0.99385, 101: 0.5005, 200: 0.00106, 201: 1, 401: 1}
    for epoch, value in table.items():
        assert train.warm_restarts_released(epoch / 600) == pytest.approx(value, abs=1e-5)


CHANGES = {
    "learning rate": {"optimizer": lambda model: torch.optim.Adam(model.parameters(), lr=1e-9)},
    "optimizer": {"optimizer": lambda model: torch.optim.SGD(model.parameters(), lr=0.01)},
    "decay": {
        "optimizer": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1)
    },
    "schedule": {"schedule": lambda _: train.constant},
    "weight of the loss": {"loss": lambda _: losses.LOSSES.bind("entropic", weight=0.5)},
    "another loss": {"loss": lambda _: losses.softmax},
    "seed": {"seed": lambda _: 6},
    "epochs": {"epochs": lambda _: 5},
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_training_does_not_take_up_a_checkpoint(tmp_path, capsys, change):
    def changed(folder):
        model = new_model()
        fit(model, folder, **{name: make(model) for name, make in CHANGES[change].items()})
        return weights(model)

    fit(new_model(), tmp_path)
    capsys.readouterr()
    after = changed(tmp_path)
    assert f"starts anew, with {next(iter(CHANGES[change]))} not as in" in capsys.readouterr().out
    assert torch.equal(after, changed(tmp_path / "fresh"))


def test_another_network_or_start_does_not_take_up_a_checkpoint(tmp_path, capsys):
    fit(new_model(), tmp_path)
    other = new_model()
    other.trunk[-1].p = 0.3
    fit(other, tmp_path)
    assert "starts anew, with network not as in" in capsys.readouterr().out
    moved = new_model()
    with torch.no_grad():
        moved.trunk[-1].p = 0.3
        next(moved.parameters())[0, 0] += 0.5
    fit(moved, tmp_path)
    assert "starts anew, with weights at the start not as in" in capsys.readouterr().out


def test_a_network_that_normalises_otherwise_does_not_take_up_a_checkpoint(tmp_path, capsys):
    for mean, anew in ((0.4, False), (0.4, False), (0.5, True)):
        model = new_model()
        model.register_buffer("pixel_mean", torch.tensor([mean]), persistent=False)
        fit(model, tmp_path)
        assert ("starts anew, with network not as in" in capsys.readouterr().out) == anew


def test_a_cell_that_is_run_again_takes_up_what_it_has_trained(tmp_path, capsys):
    model = new_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    fit(model, tmp_path, optimizer=optimizer)
    before = weights(model)
    fit(model, tmp_path, optimizer=optimizer)
    assert torch.equal(weights(model), before)
    assert "starts anew" not in capsys.readouterr().out


def written(lines):
    """A loss as a cell of a notebook defines it, with a helper beside it."""
    room = {"__name__": "cell", "torch": torch}
    exec(compile("\n".join(lines), "cell", "exec"), room)
    return room["loss"]


HELPER = ["def price(z):", "    return 2.0 * z"]
TEXT = ["def loss(out, labels):", "    return price(out.logits.square().mean(dim=1))"]


@pytest.mark.parametrize(
    ("lines", "same"),
    [
        ([*HELPER, *TEXT], True),
        ([*HELPER, "# a remark", TEXT[0], "    'What it is for.'", TEXT[1]], True),
        ([HELPER[0], "    return 3.0 * z", *TEXT], False),
        ([*HELPER, TEXT[0], TEXT[1].replace("mean", "sum")], False),
        (["rate = 2.0", HELPER[0], "    return rate * z", *TEXT], False),
    ],
)
def test_a_loss_is_its_code_and_what_it_calls_and_not_its_words(lines, same):
    assert (checkpoint.code(written(lines)) == checkpoint.code(written([*HELPER, *TEXT]))) == same


def test_a_value_that_a_loss_closes_over_or_reads_is_told():
    def bound(weight):
        return lambda out, labels: out.logits.sum(dim=1) * weight

    assert checkpoint.code(bound(1.0)) == checkpoint.code(bound(1.0)) != checkpoint.code(bound(2.0))
    reads = "def loss(out, labels):\n    return rate"
    one, other = (written([f"rate = {x}", reads]) for x in "12")
    assert checkpoint.code(one) != checkpoint.code(other)
    weights = torch.ones(3), torch.tensor([1.0, 1.0, 1.5])
    one, other = (losses.LOSSES.bind("background", weights=w) for w in weights)
    assert checkpoint.code(one) != checkpoint.code(other)


def test_a_loss_is_the_same_in_every_process():
    text = "def loss(out, labels):\n    return labels in {'a', 'b', 'c', 'd', 'e', 'f'}\n"
    text += "from osnb.train import checkpoint\nfound = checkpoint.code(loss)\nprint(found)"
    exec(text, here := {})
    env = os.environ | {"PYTHONHASHSEED": "1"}  # a set's order is another one there
    told = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)
    assert told.stdout == f"{here['found']}\n"


def test_weights_that_differ_in_the_last_digits_are_alike():
    state = new_model().state_dict()
    near = {name: x * (1 + 1e-7) for name, x in state.items()}
    torch.manual_seed(4)
    far = models.mlp(classes=3, features=8).state_dict()
    assert checkpoint.alike(checkpoint.sums(state), checkpoint.sums(near))
    assert not checkpoint.alike(checkpoint.sums(state), checkpoint.sums(far))


def test_a_training_that_begins_anew_leaves_no_history_of_the_one_before(tmp_path):
    fit(new_model(), tmp_path, epochs=1)
    with pytest.raises(FloatingPointError):
        fit(new_model(), tmp_path, loss=lambda out, labels: out.logits.sum(dim=1) * math.nan)
    assert not (tmp_path / "history.parquet").exists()


def test_each_epoch_begins_from_a_seed_of_its_own(tmp_path):
    drawn = []

    def loss(out, labels):
        drawn.append(torch.rand(()).item())
        return LOSS(out, labels)

    fit(new_model(), tmp_path, epochs=2, loss=loss)
    assert len({*drawn}) == len(drawn) == 2 * len(batches)


def test_weights_in_another_order_are_not_alike():
    one, other = ({"w": torch.tensor(w)} for w in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]))
    assert not checkpoint.alike(checkpoint.sums(one), checkpoint.sums(other))


def test_a_default_of_a_loss_is_told_also_behind_a_star():
    texts = ("rate=1.0", "rate=2.0", "*, rate=1.0", "*, rate=2.0")
    lines = ([f"def loss(out, labels, {x}):", "    return out * rate"] for x in texts)
    told = [checkpoint.code(written(each)) for each in lines]
    assert len({*told}) == 4


def test_weights_that_differ_in_the_third_digit_are_not_alike():
    state = new_model().state_dict()
    far = {name: x * 1.001 for name, x in state.items()}
    assert not checkpoint.alike(checkpoint.sums(state), checkpoint.sums(far))


def test_an_optimizer_that_goes_on_elsewhere_keeps_its_own_way_of_a_step():
    optimizer = torch.optim.AdamW(new_model().parameters(), lr=0.5)
    state = optimizer.state_dict()
    on_gpu = {"fused": True, "capturable": True, "lr": torch.tensor(0.25)}
    state["param_groups"] = [group | on_gpu for group in state["param_groups"]]
    optimizer.load_state_dict(checkpoint.placed(state, optimizer))
    (group,) = optimizer.param_groups
    assert (group["fused"], group["capturable"], group["lr"]) == (None, False, 0.25)
    assert type(group["lr"]) is float
    group["lr"] = torch.tensor(0.5)
    (group,) = checkpoint.placed(state, optimizer)["param_groups"]
    assert isinstance(group["lr"], torch.Tensor)
    assert group["lr"] == 0.25
