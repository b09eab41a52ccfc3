"""The benchmarks: their arithmetic, with a clock that only moves when told to."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.benchmarks import codec, data, minutes, runs, stopwatch, wall
from tests.benchmarks import metrics as bench
from tests.benchmarks import train as training
from tests.benchmarks.__main__ import app
from tests.benchmarks.candidates import CANDIDATES, OURS, SORT, draw, expected


class Clock:
    """Gives the seconds that calls have let pass."""

    now = 0.0

    def __call__(self):
        return self.now

    def takes(self, *seconds, finds=()):
        """A candidate whose calls take so long, one after the other, then as the last did."""
        left = list(seconds)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return dict(finds)

        return lambda sample: call


@pytest.fixture
def clock():
    return Clock()


def test_every_round_times_all_and_starts_one_further_down_the_list(clock):
    order = []

    def call(name):
        order.append(name)
        clock.now += 1

    calls = {name: lambda name=name: call(name) for name in "abc"}
    stopwatch.interleaved(calls, repeats=4, clock=clock)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"


def test_ratios_are_taken_within_each_round_and_then_their_median(clock):
    candidates = {  # the first call of each is the check
        SORT: clock.takes(1, 1, 2, 4),
        OURS: clock.takes(1, 2, 2, 2),
        "other": clock.takes(1, 3, 4, 40),
        "slow": clock.takes(61),
    }
    report = bench.compare([100], repeats=3, candidates=candidates, clock=clock)
    lines = {line["what"]: line for line in report["lines"]}
    assert lines["other"]["to_sort"] == 3  # of 3, 2 and 10
    assert lines["other"]["to_ours"] == 2  # of 1.5, 2 and 20
    assert lines["slow"]["skipped"] == "too slow: over 60 s"


@pytest.mark.parametrize("value", [0.5, np.nan])
def test_a_candidate_that_finds_another_value_is_refused_by_name(clock, value):
    candidates = {SORT: clock.takes(1), OURS: clock.takes(1)}
    candidates["liar"] = clock.takes(1, finds={"auroc": value})
    with pytest.raises(ValueError, match=rf"liar finds auroc = {value}; needed is 0\.7"):
        bench.compare([1_000], candidates=candidates, clock=clock)


def test_a_value_by_another_rule_has_to_say_so():
    truth = expected(draw(1_000))
    other = truth["fpr95 (of the unknown)"]
    assert bench.deviation("x", {"fpr95 (of the unknown)": other}, truth) == 0
    with pytest.raises(ValueError, match="x finds fpr95 = "):
        bench.deviation("x", {"fpr95": other}, truth)


def test_all_candidates_agree_and_the_report_is_printed_and_written(monkeypatch, tmp_path):
    monkeypatch.setattr(stopwatch, "ROUND", 0)
    monkeypatch.setattr(bench, "RESAMPLES", 2)
    file = tmp_path / "bench.json"
    words = ["metrics", "--rows", "3000", "--repeats", "1", "--json", str(file)]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    lines = json.loads(file.read_text())["lines"]
    assert [line["what"] for line in lines] == list(CANDIDATES)
    assert all("skipped" in line or line["deviation"] <= 1e-6 for line in lines)
    assert "values agree with ours" in done.stdout


def test_a_step_and_a_prediction_are_timed_and_compute_alike():
    report = training.compare(rounds=1, cases={"conv": training.Case(6, 16, 12)})
    step, predict, fold = report["lines"]
    assert fold["plain"] > 0 < fold["ours"]
    assert {*report["ratios"]} == {"conv", "conv predict", "conv fold"}
    assert step["plain"] > 0 < step["ours"]
    assert abs(np.subtract(*predict["auroc"].values())) <= 0.1
    assert any("GPU" in line or "threads" in line for line in training.show(report)[1:])


def test_the_three_ways_to_a_photograph_give_the_same_pixels(tmp_path):
    files, _ = data._photographs(None, tmp_path)
    ways = data._large(files[:3], tmp_path).values()
    theirs, ours, cached = (np.array(way()).astype(int) for way in ways)
    assert np.abs(theirs - ours).max() <= 1
    np.testing.assert_array_equal(ours, cached)


def test_the_start_of_a_kernel_is_timed_beside_papermill_in_turns(monkeypatch):
    asked = []
    calls = {name: lambda name=name: asked.append(name) for name in ("osnb run", "papermill")}
    monkeypatch.setattr(runs, "commands", lambda place: calls)
    report = runs.start(rounds=2, clock=itertools.count().__next__)
    assert asked == [*calls, *calls, *[*calls][::-1]]  # once untimed, then each round turned
    assert runs.show_start(report)[-1] == "  ratio        1.00"


def test_operations_are_those_of_the_convolutions_and_the_head_counted_by_hand():
    wide, edge, total = [3, 64, 64, *[128] * 7], 32, 0
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(wide)):
        edge //= 2 if layer % 3 == 2 else 1
        total += 2 * 9 * inputs * outputs * edge * edge
    total += 2 * 128 * 6
    assert wall.operations("vgg32", {}, classes=6, pixels=32) == 3 * total


def test_costs_follow_from_images_epochs_and_two_rates(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    for name, seconds, state in (("a", 2.0, "done"), ("b", 3.5, "done"), ("c", 9.0, "failed")):
        file = tmp_path / "runs" / "21_vaze_train" / name / "run.json"
        file.parent.mkdir(parents=True)
        run = {"notebook": "21_vaze_train", "parameters": {"size": "tiny"}, "seconds": seconds}
        file.write_text(json.dumps(run | {"state": state}))
    report = wall.costs([wall.CASES[0]], speed=100, fair=60)
    (line,) = report["lines"]
    assert (line["epochs"], line["network"]) == (600, "vgg32")
    assert line["hours"] == pytest.approx(5 * 600 * 30_000 / 100 / 3600)
    assert line["gpu_minutes"] == pytest.approx(5)
    assert line["pflop"] == pytest.approx(17.7, abs=0.1)
    found = {"notebook": "21_vaze_train", "size": "tiny", "runs": 2, "seconds": 5.5}
    assert report["runs"] == [found]
    assert any("not measured" in str(part) for part in wall.show(report))


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_that_is_saved_again_is_the_same_picture_with_another_noise(channels):
    ramp = np.arange(0, 256, 8, dtype=np.uint8)
    images = np.broadcast_to(ramp, (2, channels, 32, 32)).copy()
    images[1] = images[1].transpose(0, 2, 1)
    found = codec.saved(images, 75)
    assert found.shape == images.shape
    assert found.dtype == np.uint8
    gap = np.abs(found.astype(int) - images)
    assert 0 < gap.max() <= 16


def trainings(*rows):
    """Stand in for finished trainings: regime, split, changed settings and epochs of each."""
    stamps = []
    for regime, split, overrides, epochs in rows:
        columns = {"benchmark": "cifar10", "method": "softmax", "regime": regime, "split": split}
        stamp = {"columns": columns, "parameters": {"overrides": overrides}}
        stamps.append((None, stamp | {"settings": {"epochs": epochs}}))
    return lambda notebook, size: iter(stamps if size == "paper" else [])


def test_minutes_count_networks_as_they_are_but_for_their_length(monkeypatch):
    numbers = iter([0.5, 0.7, 0.9])
    kept = [("fast", 3, "answer=mirrored", 12), ("fast", 3, "answer=mirrored", 12)]
    left = [("fast", 3, "smoothing=0.2", 12), ("strong", 3, "", 12), ("fast", 0, "", 12)]
    monkeypatch.setattr(minutes.stamps, "finished", trainings(*kept, *left))
    monkeypatch.setattr(minutes.tables, "read", lambda path: path)
    monkeypatch.setattr(minutes.own_data, "rates", lambda *_: [next(numbers)] * 3)
    found = minutes.reached()
    (own,) = found[found["network"] == "small network"].to_dict("records")
    assert (own["split"], own["epochs"], own["runs"], own["accuracy"]) == (3, 12, 2, 0.6)
    assert found.loc[found["network"] == minutes.THIRD, "split"].to_list() == [2, 3, 4]


def test_minutes_of_a_training_are_its_images_at_the_speed_of_a_step(monkeypatch, clock, tmp_path):
    def steps(regime, data):
        return lambda: 600 + len(clock.takes({"fast": 2, "baseline": 6}[regime])(None)())

    rows = pd.DataFrame({"network": ["small network", "VGG32", minutes.THIRD], "epochs": [3, 1, 1]})
    rows = rows.assign(split=2, images=30_000, runs=1, accuracy=0.9, MSP=0.8, MLS=[0.9, 0.9, None])
    monkeypatch.setattr(minutes, "_steps", steps)
    monkeypatch.setattr(minutes, "reached", lambda: rows)
    found = minutes.compare(rounds=2, clock=clock)
    assert found["speed"] == {"small network": 300, "VGG32": 100}
    assert [line["minutes"] for line in found["lines"]] == [5, 5, 5]
    minutes.drawn(found).savefig(tmp_path / "made.svg")
    text = (tmp_path / "made.svg").read_text()
    assert "small network, MLS" in text
    assert "VGG32, third party, MSP" in text
    assert "third party, MLS" not in text
    assert "VGG32 100" in minutes.show(found)[1]


def test_what_trainings_reached_is_read_from_the_committed_tables():
    found = minutes.reached()
    assert found[["accuracy", "MSP"]].stack().between(0.5, 1).all()
    assert found["MLS"].isna().equals(found["network"] == minutes.THIRD)
