"""The bench: its arithmetic with a clock that only moves when told to; never a time limit."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from osnb import metrics
from osnb.bench import data, runs, stopwatch
from osnb.bench import metrics as bench
from osnb.bench import train as training
from osnb.bench.candidates import CANDIDATES, OURS, SORT, draw, expected
from osnb.cli import app


class Clock:
    """Gives the seconds that calls have let pass."""

    def __init__(self):
        self.now = 0.0

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


def osnb(*words):
    """(exit code, what was printed, what was complained of) of `osnb WORDS`."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


# The stopwatch


def test_every_round_times_all_and_starts_one_further_down_the_list(clock):
    order = []

    def call(name):
        order.append(name)
        clock.now += 1

    calls = {name: lambda name=name: call(name) for name in "abc"}
    stopwatch.interleaved(calls, repeats=4, clock=clock)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"


def test_a_fast_call_is_repeated_and_its_mean_is_taken(clock, monkeypatch):
    monkeypatch.setattr(stopwatch, "ROUND", 3)
    calls = []

    def fast():
        calls.append(clock.now)
        clock.now += 0.75

    seconds = stopwatch.interleaved({"fast": fast}, repeats=2, clock=clock)
    assert seconds == {"fast": [0.75, 0.75]}
    assert len(calls) == 8


def test_ratios_are_taken_within_each_round_and_then_their_median(clock):
    candidates = {  # the first call of each is the check
        SORT: clock.takes(1, 1, 2, 4),
        OURS: clock.takes(1, 2, 2, 2),
        "other": clock.takes(1, 3, 4, 40),
    }
    report = bench.compare([100], repeats=3, candidates=candidates, clock=clock)
    found = {line["what"]: line for line in report["lines"]}
    assert [found[name]["seconds"] for name in candidates] == [2, 2, 4]
    assert found["other"]["to_sort"] == 3  # of 3, 2 and 10
    assert found["other"]["to_ours"] == 2  # of 1.5, 2 and 20
    assert found[OURS]["to_sort"] == 1  # of 2, 1 and 0.5


# The budget


def skipped(report):
    return {(line["rows"], line["what"]) for line in report["lines"] if "skipped" in line}


def test_what_would_take_too_long_in_proportion_to_the_size_before_is_not_called(clock):
    called = []

    def slow(sample):
        def call():
            called.append(len(sample.known) + len(sample.unknown))
            clock.now += called[-1] / 100
            return {}

        return call

    candidates = {SORT: clock.takes(1), OURS: clock.takes(1), "slow": slow}
    report = bench.compare(
        [10_000, 100, 1_000], repeats=1, budget=50, candidates=candidates, clock=clock
    )
    assert [line["rows"] for line in report["lines"][::3]] == [100, 1_000, 10_000]
    assert skipped(report) == {(10_000, "slow")}
    assert called == [100, 100, 1_000, 1_000]
    assert report["lines"][-1]["skipped"] == "too slow: over 50 s"


def test_what_takes_too_long_once_is_not_timed_nor_called_again(clock):
    candidates = {SORT: clock.takes(1), OURS: clock.takes(1), "slow": clock.takes(51)}
    report = bench.compare([100, 1_000], budget=50, candidates=candidates, clock=clock)
    assert skipped(report) == {(100, "slow"), (1_000, "slow")}
    assert clock.now == 51 + 2 * 2 * (1 + 5)


# The values


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


def test_the_deviation_is_the_largest():
    truth = {"auroc": 0.5, "aurc": 0.25}
    found = bench.deviation("x", {"auroc": 0.5 + 2e-8, "aurc": 0.25 - 3e-8}, truth)
    assert found == pytest.approx(3e-8)
    assert bench.deviation("x", {}, truth) == 0


def test_the_other_rules_are_what_they_are_called():
    sample = draw(999)
    found = expected(sample)
    score, is_known, right = sample.pooled()
    coverage, risk = metrics.risk_coverage(score, right)
    trapezoid = np.trapezoid(risk, coverage) / (coverage[-1] - coverage[0])
    assert found["aurc (trapezoid)"] == pytest.approx(trapezoid, abs=1e-12)
    best = metrics.risk_coverage(-np.arange(999), np.sort(right)[::-1])[1].mean()
    assert found["e_aurc (finite)"] == pytest.approx(found["aurc"] - best, abs=1e-12)
    unknown = np.sort(score[is_known == 0])
    refused = (sample.known <= unknown[int(np.ceil(0.95 * len(unknown))) - 1]).mean()
    assert found["fpr95 (of the unknown)"] == refused
    assert abs(found["average_precision (trapezoid)"] - found["average_precision"]) < 0.01


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_two_thirds_are_known_and_four_fifths_of_them_right(kind):
    known, correct, unknown = draw(30_000, kind)
    assert (len(known), len(correct), len(unknown)) == (20_000, 20_000, 10_000)
    assert known.dtype == unknown.dtype == kind
    assert correct.mean() == pytest.approx(0.8, abs=0.01)
    assert metrics.auroc(known, unknown) == pytest.approx(0.76, abs=0.01)  # Phi(1 / sqrt 2)


COMPUTES = {
    SORT: 0,
    OURS: 10,
    "summary float64": 10,
    "osr-metrics": 10,
    "pytorch-ood": 5,
    "torch-uncertainty[cpu]": 4,
    "scikit-learn": 3,
}


def test_all_candidates_agree_and_are_timed_or_not_installed(monkeypatch):
    monkeypatch.setattr(stopwatch, "ROUND", 0)
    found = bench.compare([3_000], repeats=1)  # a thousand unknown ones: FPR 1e-3 is met exactly
    report = json.loads(json.dumps(found))
    assert [line["what"] for line in report["lines"]] == list(CANDIDATES)
    for line in report["lines"]:
        if line.get("skipped") == bench.NOT_INSTALLED:
            assert line["what"] == "torch-uncertainty[cpu]"
            continue
        assert len(set(line["computes"]) - {"accuracy"}) == COMPUTES[line["what"]]
        assert line["deviation"] <= 1e-6
        assert line["seconds"] > 0
    assert report["versions"]["osr-metrics"]
    assert report["versions"]["numpy"] == np.__version__
    assert report["cores"] >= 1


def test_versions_are_those_of_installed_packages_with_or_without_extras():
    found = stopwatch.versions(["bare sort", "pytest[all]", "typer"])
    assert list(found) == ["numpy", "torch", "pytest", "typer"]
    assert found["pytest"] == pytest.__version__


# What is printed and written


def printed(report, show=bench.show):
    from rich.console import Console

    console = Console(markup=False, width=200)
    with console.capture() as capture:
        console.print(*show(report), sep="\n")
    return capture.get()


def test_the_table_says_what_each_computes_and_how_much_longer_it_takes(clock):
    def missing(sample):
        raise ImportError("no module")

    truth = expected(draw(5_000))
    near, right = truth["auroc"] + 2e-8, truth["accuracy"]
    candidates = {
        SORT: clock.takes(0.5),
        OURS: clock.takes(2),
        "half[all]": clock.takes(1, finds={"auroc": near, "accuracy": right}),
        "gone[cpu]": missing,
        "slow": clock.takes(61),
    }
    lines = printed(bench.compare([5_000], candidates=candidates, clock=clock)).splitlines()
    cells = [" ".join(line.split()) for line in lines]
    assert cells[0] == "rows what computes time / sort / ours"
    assert cells[3] == "5,000 half[all] 1 of 10 1,000.000 ms 2.00 0.50"
    assert cells[4] == "5,000 gone[cpu] not installed"
    assert cells[5] == "5,000 slow too slow: over 60 s"
    assert lines[6].startswith("bootstrap_summary: 1,000 resamples of 15,000 samples in ")
    assert lines[7] == "gone[cpu] is not installed: pip install 'gone[cpu]'"
    assert "values agree with ours to 2e-08:" in lines
    assert "  half[all]: auroc, accuracy" in lines


@pytest.fixture
def asked(monkeypatch, clock):
    """What the command asks `compare` for, which answers with "report"."""
    candidates = {SORT: clock.takes(1), OURS: clock.takes(2), "other[all]": clock.takes(3)}
    asked = {"report": bench.compare([100, 200], candidates=candidates, clock=clock)}

    def compare(rows, *, repeats):
        asked.update(rows=rows, repeats=repeats)
        return asked["report"]

    monkeypatch.setattr(bench, "compare", compare)
    return asked


def test_the_report_is_printed_and_written_as_json(tmp_path, asked):
    file = tmp_path / "folder" / "bench.json"
    words = ("--rows", 200, "--rows", 100, "--repeats", 3, "--json", file)
    code, out, _ = osnb("bench", "metrics", *words)
    assert (code, asked["rows"], asked["repeats"]) == (0, [200, 100], 3)
    assert json.loads(file.read_text()) == asked["report"]
    assert "other[all]" in out


def test_the_report_is_printed_as_json_alone(tmp_path, asked, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert json.loads(osnb("bench", "metrics", "--json", "-")[1]) == asked["report"]
    assert not [*tmp_path.iterdir()]


def test_three_sizes_and_five_rounds_are_usual(asked):
    assert osnb("bench", "metrics")[0] == 0
    assert (asked["rows"], asked["repeats"]) == ((10_000, 100_000, 1_000_000), 5)


def test_a_report_that_cannot_be_written_leaves_the_old_file(tmp_path, asked):
    file = tmp_path / "bench.json"
    file.write_text("old")
    asked["report"] = {"lines": object()}
    done = CliRunner().invoke(app, ["bench", "metrics", "--json", str(file)])
    assert isinstance(done.exception, TypeError)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]
    assert file.read_text() == "old"


def test_a_wrong_name_is_answered_with_the_right_ones():
    assert osnb("bench", "trian") == (
        2,
        "",
        "osnb: 'trian' is not one of: batch, data, metrics, start, train\n",
    )


# Memory


@pytest.mark.parametrize(("double", "width"), [([], 4), (["--double"], 8)])
def test_memory_is_that_of_a_process_of_its_own(tmp_path, double, width):
    file = tmp_path / "memory.json"
    code, out, _ = osnb("bench", "metrics", "--memory", 300_000, *double, "--json", file)
    found = json.loads(file.read_text())
    assert code == 0
    assert found["inputs"] == 300_000 * width + 200_000  # scores, and a byte for each flag
    assert found["inputs"] < found["peak"] < 2**30
    assert found["seconds"] > 0
    assert out.startswith(f"summary of 300,000 rows of float{8 * width}: ")


def test_a_process_that_fails_is_told_with_its_reason(monkeypatch):
    with pytest.raises(ChildProcessError, match="1,000 rows of text ended with 1: TypeError"):
        bench.memory(1_000, kind="text")
    killed = subprocess.CompletedProcess([], -9, "", "")
    monkeypatch.setattr(bench.subprocess, "run", lambda *args, **options: killed)
    code, _, error = osnb("bench", "metrics", "--memory", 1_000)
    assert code == 1
    assert (
        error == "osnb: 1,000 rows of float32 ended with -9: killed, perhaps for want of memory\n"
    )


def test_the_bench_brings_no_library_along_before_it_times():
    code = "import sys, osnb.bench.metrics; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn", "scipy", "rich", "osr_metrics"} & set(done.stdout.split())


# Training


@pytest.fixture(scope="module")
def trained():
    return training.compare(rounds=2, cases={"conv": training.Case(6, 16, 12)})


def test_training_is_timed_as_steps_and_predictions_of_both_kinds(trained):
    lines = {line["what"]: line for line in trained["lines"]}
    assert list(lines) == ["step", "predict"]
    assert trained["ratios"] == {
        "conv": lines["step"]["ratio"],
        "conv predict": lines["predict"]["ratio"],
    }
    assert all(line["plain"] > 0 and line["ours"] > 0 for line in lines.values())
    assert lines["predict"]["distinct"].keys() == lines["predict"]["auroc"].keys()
    assert lines["predict"]["distinct"]["plain"] == 12
    difference = np.subtract(*lines["predict"]["auroc"].values())
    assert abs(difference) <= 0.1  # of 36 pairs, three in another order


def test_a_ratio_of_training_is_plain_by_ours_and_speeds_are_images_by_seconds(clock):
    calls = {"plain": clock.takes(9, 6, 3)(None), "ours": clock.takes(9, 2, 3)(None)}
    line = training._line("net", "step", calls, 12, 2, clock)
    assert line["ratio"] == (6 / 2 + 3 / 3) / 2
    assert (line["plain"], line["ours"]) == (12 / 4.5, 12 / 2.5)


def test_our_step_trains_and_the_plain_one_computes_the_same_loss():
    torch.manual_seed(0)
    calls = training._calls("conv", training.Case(6, 16, 12), torch.device("cpu"))
    losses = [calls["plain"]() for _ in range(8)]
    assert losses[-1] < losses[0]
    assert all(calls["ours"]() is None for _ in range(2))


def test_the_table_of_training_names_the_machine_and_what_was_not_measured(trained):
    text = printed(trained, training.show)
    assert "conv" in text
    assert "GPU: not measured" in text or "threads" in text


# Data


@pytest.fixture(scope="module")
def moved():
    return data.compare(rounds=2)


def test_data_is_timed_three_ways_each_and_pillow_is_the_measure(moved):
    ways = ["Pillow", "torchvision on Pillow", "ours"], ["Pillow", "ours", "ours, from the cache"]
    assert [line["way"] for line in moved["lines"]] == [*ways[0], *ways[1]]
    assert [line["ratio"] for line in moved["lines"] if line["way"] == "Pillow"] == [1, 1]
    assert all(line["speed"] > 0 for line in moved["lines"])
    assert "32 px: crop, flip, normalise: ours" in moved["ratios"]


def test_the_three_ways_to_a_photograph_give_the_same_pixels(tmp_path):
    files, said = data._photographs(None, tmp_path)
    assert said == "drawn, 500 x 375"
    calls = data._large(files[:3], tmp_path)
    theirs, ours, cached = (np.array(call()).astype(int) for call in calls.values())
    assert theirs.shape == (3, 3, 224, 224)
    assert np.abs(theirs - ours).max() <= 1
    np.testing.assert_array_equal(ours, cached)


def test_the_three_ways_to_a_small_batch_differ_only_in_their_draws():
    batches = {way: call() for way, call in data._small(32).items()}
    assert {tuple(batch.shape) for batch in batches.values()} == {(128, 3, 32, 32)}
    means = [batch.mean().item() for batch in batches.values()]
    assert max(means) - min(means) < 0.1  # how much black came in


def test_a_folder_without_photographs_is_refused(tmp_path):
    code, _, said = osnb("bench", "data", "--folder", tmp_path)
    assert (code, said) == (2, f"osnb: no *.JPEG or *.jpg in {tmp_path}\n")


def test_the_table_of_data_says_which_photographs_and_what_was_not_measured(moved):
    text = printed(moved, data.show)
    assert "drawn, 500 x 375" in text
    assert "GPU: not measured" in text


# Runs


@pytest.mark.slow
def test_runs_of_nothing_pass_through_the_engine_and_are_counted_and_collected():
    found = runs.batch(runs=20, tables=3, workers=2)
    assert found["rows"] % 3 == 0
    shown = runs.show_batch(found | {"engine": 0.5, "memory": 123e6, "collect": 0.25})
    assert shown[0].startswith("20 runs of nothing on 2 workers")
    assert "25.0 ms a run" in shown[3]
    assert "123 MB" in shown[5]
    assert f"3 finished runs as one frame of {found['rows']:,} rows in 0.25 s" in shown[6]


def test_a_run_of_nothing_that_fails_is_no_measurement(monkeypatch):
    monkeypatch.setattr(runs, "pretend", lambda *args, **how: {"state": "failed"})
    with pytest.raises(RuntimeError, match="2 of 2 runs are not done"):
        runs.batch(runs=2, tables=1, workers=1)


def test_the_start_of_a_kernel_is_timed_beside_papermill_in_turns(monkeypatch):
    asked = []
    calls = {name: lambda name=name: asked.append(name) for name in ("osnb run", "papermill")}
    monkeypatch.setattr(runs, "commands", lambda place: calls)
    found = runs.start(rounds=2, clock=itertools.count().__next__)
    assert asked == [*calls, *calls, *[*calls][::-1]]  # once untimed, then each round turned
    assert found["ratio"] == 1
    assert runs.show_start(found | {"ratio": 0.5})[-1] == "  ratio        0.50"


@pytest.mark.slow
def test_both_ways_execute_the_same_notebook(tmp_path):
    for call in runs.commands(tmp_path).values():
        call()
    ours = tmp_path / "runs" / "90_full" / "full" / "executed.ipynb"
    for executed in (ours, tmp_path / "out.ipynb"):
        assert "tensor(2.)" in executed.read_text()
