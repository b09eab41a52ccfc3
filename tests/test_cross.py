"""Methods of all papers in one frame: measures by hand, one naming, ranks by scipy."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from osnb import claims, repro, tables
from osnb.claims import cross

RUN = {"run": "r", "notebook": "31_kim_train", "protocol": "mini_kim", "recipe": "Baseline"}
RUN |= {"loss": "softmax", "method": "plain", "seed": 0}
RULES = ("max_softmax_log_odds", "max_logit", "energy", "odin")


@pytest.fixture
def runs(tmp_path):
    """A function that writes a run's scores table, of whole numbers so that many tie."""
    made = []

    def add(*, wrong=12, rules=RULES, **settings):
        rng = np.random.default_rng(len(made))
        parts = [
            ("known", "drawn", "", k % 3, k % 3 if k >= wrong else (k + 1) % 3) for k in range(30)
        ]
        parts += [("unknown", "drawn", group, -2, 0) for group in ("near", "far") * 8]
        parts += [("unknown", "gaussian_noise", "far", -2, 1)] * 9
        parts += [("negative", "drawn", "", -1, 2)] * 7
        frame = pd.DataFrame(parts, columns=["role", "source", "group", "label", "pred"])
        frame = frame.assign(sample=[f"s{i:03}" for i in range(len(frame))])
        frame["class"] = frame["role"] + frame["label"].astype(str) + frame["group"]
        for rule in rules:
            frame[rule] = rng.normal((frame["role"] == "known") * 2, 2, len(frame)).round()
        path = tmp_path / f"{len(made)}.parquet"
        tables.write(path, frame[[*tables.COLUMNS, *rules]], {})
        made.append(RUN | {"run": f"r{len(made)}", "path": str(path)} | settings)
        return pd.DataFrame(made)

    return add


def by_hand(scores, task, rule):
    """Every measure from its definition, pair by pair and threshold by threshold."""
    known = scores[scores["role"] == "known"]
    right = known["pred"] == known["label"]
    noise = scores["source"] == "gaussian_noise"
    of = {
        "negative": scores["role"] == "negative",
        "near": scores["group"] == "near",
        "far": (scores["group"] == "far") & ~noise,
        "noise": noise,
        "unknown": scores["role"] == "unknown",
    }
    inside = known[rule][right] if task == "wrong" else known[rule]
    outside = known[rule][~right] if task == "wrong" else scores[rule][of[task]]
    pairs = [(a > b) + (a == b) / 2 for a in inside for b in outside]
    steps = sorted({*inside, *outside}, reverse=True)
    first = next(t for t in steps if (inside >= t).mean() >= 0.95)
    found = {"accuracy": right.mean(), "auroc": np.mean(pairs), "fpr95": (outside >= first).mean()}
    curve = [(0, 0)] + [
        ((outside >= t).mean(), (known[rule][right] >= t).sum() / len(known)) for t in steps
    ]
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(curve))
    return found | {"oscr": np.nan if task == "wrong" else area}


@pytest.mark.parametrize("task", cross.TASKS)
def test_each_measure_is_the_one_by_hand(runs, task):
    found = claims.cross_evidence(table := runs(), resamples=0).points()
    row = found[(found["task"] == task) & (found["rule"] == "odin")].iloc[0]
    wanted = by_hand(tables.read(table["path"][0]), task, "odin")
    assert row[list(wanted)].to_dict() == pytest.approx(wanted, nan_ok=True)


def test_aurc_has_unknown_samples_as_errors(runs):
    """Without ties: the mean risk of the best 1, 2, ... samples."""
    scores = tables.read(runs()["path"][0])
    scores["max_logit"] = np.random.default_rng(0).permutation(len(scores)).astype(float)
    tables.write(runs()["path"][1], scores, {})
    found = claims.cross_evidence(runs().iloc[[1]], resamples=0).points()
    row = found[(found["task"] == "far") & (found["rule"] == "max_logit")].iloc[0]
    far = (scores["group"] == "far") & (scores["source"] == "drawn")
    part = scores[(scores["role"] == "known") | far].sort_values("max_logit", ascending=False)
    risks = (part["pred"] != part["label"]).expanding().mean()
    assert row["aurc"] == pytest.approx(risks.mean())


def test_a_run_without_errors_has_no_number_for_wrong_and_the_mean_is_of_the_others(runs):
    runs(wrong=0)
    evidence = claims.cross_evidence(runs(seed=1), resamples=20)
    wrong = evidence.points().query("task == 'wrong' and rule == 'odin'").set_index("seed")
    assert np.isnan(wrong.loc["0", "auroc"])
    assert wrong.loc["0", "aurc"] == 0
    cells = claims.cross_cells(evidence).points()
    cell = cells.query("task == 'wrong' and rule == 'odin'").iloc[0]
    assert cell["auroc"] == wrong.loc["1", "auroc"]
    assert cell["aurc"] == wrong["aurc"].mean()
    assert (cell["runs"], cell["seeds"]) == ("r0 r1", "2")


def test_methods_share_their_draws_and_the_first_column_is_the_sample(runs):
    evidence = claims.cross_evidence(runs(recipe="OE"), every_rule=True, resamples=30)
    one, other = (evidence.rows("accuracy", rule=rule, task="near") for rule in RULES[:2])
    np.testing.assert_array_equal(one, other)
    assert evidence.resamples == 30
    assert evidence.points().equals(
        claims.cross_evidence(runs(recipe="OE").head(1), every_rule=True, resamples=0).points()
    )


def test_other_protocols_and_splits_are_left_out_and_one_rule_is_enough_for_a_method(runs):
    runs(protocol="p1")
    runs(protocol="mini_tinyimagenet", notebook="21_vaze_train", recipe="baseline", split=1)
    evidence = claims.cross_evidence(runs(recipe="OE"), resamples=0)
    assert set(evidence.keys["run"]) == {"r2"}
    assert set(evidence.keys["method"]) == {"EOS / OE"}
    assert not len(claims.cross_evidence(runs().head(2), resamples=0).keys)


NAMES = [
    ("12_palechor_train", {"loss": "softmax"}, "max_softmax_log_odds", "MSP"),
    ("12_palechor_train", {"loss": "entropic"}, "max_softmax_log_odds", "EOS / OE"),
    ("12_palechor_train", {"loss": "background"}, "max_logit", "BG, MLS"),
    ("21_vaze_train", {"recipe": "baseline"}, "max_logit", "MLS"),
    ("21_vaze_train", {"recipe": "strong"}, "max_logit", "strong"),
    ("21_vaze_train", {"recipe": "strong", "loss": "arpl"}, "max_logit", "ARPL+"),
    ("21_vaze_train", {"recipe": "baseline", "method": "arpl_cs"}, "energy", "ARPL + CS, energy"),
    ("21_vaze_train", {"recipe": "baseline", "method": "osrci"}, "openmax", "G-OpenMax"),
    ("21_vaze_train", {"recipe": "baseline", "method": "c2ae"}, "own", "C2AE"),
    ("21_vaze_train", {"recipe": "ensemble"}, "max_softmax_log_odds", "Ensemble"),
    ("21_vaze_train", {"recipe": "warm_up"}, "max_logit", "softmax with warm up, MLS"),
    ("31_kim_train", {"recipe": "Baseline"}, "mahalanobis", "Mahalanobis"),
    ("31_kim_train", {"recipe": "Ensemble"}, "max_softmax_log_odds", "Ensemble"),
    ("31_kim_train", {"recipe": "MCdropout"}, "max_logit", "MC dropout, MLS"),
]


@pytest.mark.parametrize(("notebook", "settings", "rule", "name"), NAMES)
def test_one_naming_serves_all_three_papers(notebook, settings, rule, name):
    run = RUN | {"notebook": notebook} | settings
    assert cross.method(cross.network(run), rule) == name


@pytest.fixture(params=[9, 0], ids=["distinct", "tied"])
def table(request):
    """(tasks, methods, 1 + R)."""
    return np.random.default_rng(1).normal(0, 1, (4, 7, 5)).round(request.param)


def test_spearman_and_w_are_those_of_scipy(table):
    rho = claims.spearman(table[0], table[1])
    assert rho == pytest.approx([stats.spearmanr(*table[:2, :, r])[0] for r in range(5)])
    friedman = [stats.friedmanchisquare(*table[:, :, r].T)[0] for r in range(5)]
    with_blocks = [x / (4 * 6) for x in friedman]
    assert claims.kendall_w(table) == pytest.approx(with_blocks)


def test_w_without_ties_is_the_mean_spearman_on_another_scale():
    table = np.random.default_rng(2).normal(size=(4, 7, 1))
    rhos = [claims.spearman(a, b)[0] for a, b in itertools.combinations(table, 2)]
    assert (4 * claims.kendall_w(table)[0] - 1) / 3 == pytest.approx(np.mean(rhos))
    assert claims.kendall_w(np.repeat(table[:1], 4, axis=0)) == pytest.approx(1)


def test_too_few_methods_a_gap_or_no_order_give_no_number(table):
    gap = table[0].copy()
    gap[2, 1] = np.nan
    assert np.isnan(claims.spearman(table[0, :2], table[1, :2])).all()
    assert np.isnan(claims.spearman(gap, table[1])).tolist() == [False, True, *[False] * 3]
    assert np.isnan(claims.spearman(np.ones((7, 5)), table[1])).all()
    assert np.isnan(claims.kendall_w(np.array([gap, table[1]]))).sum() == 1


def test_every_gap_has_a_command_that_the_training_notebook_takes():
    file = "params/31_kim_train/{}.yaml"
    declared = repro.declared(repro.root() / "notebooks" / "31_kim_train.ipynb")
    for benchmark, base in cross.BASES.items():
        values = repro.params(repro.root() / file.format(base))
        assert cross.BENCHMARKS[values.get("protocol", "mini_kim")] == (benchmark)
        for name, settings in cross.SETTINGS.items():
            assert file.format(base) in claims.command(name, benchmark)
            for key, value in settings.items():
                assert type(declared[key]) is type(value), key
    assert claims.command("strong", "kim2021") == ""
