"""What the capstones train and judge with: digits networks, made from a seed within a second."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from osnb import datasets, losses, metrics, models, protocols, scores, train
from osnb.base import workbook
from osnb.base.labels import NEGATIVE, UNKNOWN
from osnb.base.outputs import Outputs
from osnb.datasets.augment import AUGMENT
from osnb.teach import exercise

KNOWN = 5  # digits 0 to 4
PULLS = {"weak": 0.5, "strong": 1.5}  # of a made-up confidence towards the right answers
EPOCHS, BATCH, RATE, WIDTH = 20, 32, 0.003, 64
NOT_WRITTEN = "not written yet"
HIDDEN, STUDENT = 8, 2.365  # seeds, and the 97.5 % point of t for so many

Loss = Callable[[Outputs, torch.Tensor], torch.Tensor]
Rule = Callable[["Answers"], np.ndarray]


class Answers(NamedTuple):
    """What a network says about N images: logits (N, C), features (N, D), rows (N of a frame).

    rows has sample (its id), wnid, role, label (a class in [0, C), -1 or -2).
    """

    logits: np.ndarray
    features: np.ndarray
    rows: pd.DataFrame

    @property
    def out(self) -> Outputs:
        """Logits and features, as a scoring rule takes them."""
        return Outputs(self.logits, self.features)

    @property
    def labels(self) -> np.ndarray:
        """(N,) int64."""
        return self.rows["label"].to_numpy()

    @property
    def right(self) -> np.ndarray:
        """(N,) bool, the largest logit is that of the label; False for what is not known."""
        return self.logits.argmax(axis=1) == self.labels


def answers(loss: Loss, *, seed: int, negatives: float) -> dict[tuple[str, str], Answers]:
    """Train a small network on digits with `loss`; what it says about each kind of image.

    Digits 0 to 4 are known, 5 and 6 negative, 7 to 9 and drawn letters unknown. The seed
    decides the initial weights, the order, which half of the digits is tested, and the letters.

    Args:
        loss: f(out, labels) -> (N,), labels in [0, 5) or NEGATIVE.
        seed: of all that is drawn, >= 0.
        negatives: share of the negative training images that training shows, in [0, 1].

    Returns:
        By (split, side): train, val and test of known and negative, test of unknown and letters.

    Raises:
        ValueError: negatives is no rate.
    """
    if not 0 <= negatives <= 1:
        raise ValueError(f"negatives is a rate in [0, 1]; got {negatives}")
    workbook.seed_all(seed)
    digits = datasets.READERS["digits"](seed=seed)
    rows = protocols.images(datasets.digit_classes(), digits.rows)
    shown = rows[rows["split"] == "train"]
    place = shown.groupby("wnid").cumcount() / shown.groupby("wnid")["sample"].transform("size")
    shown = shown[(shown["role"] == "known") | (place < negatives)]
    network = _trained(loss, digits, shown, seed)
    letters = datasets.READERS["glyphs"](seed=seed)
    unseen = letters.rows.assign(role="unknown", label=UNKNOWN)
    found = {key: _asked(network, digits, part) for key, part in rows.groupby(["split", "role"])}
    return found | {("test", "letters"): _asked(network, letters, unseen)}


def written(function: Callable, *args: Any, **settings: Any) -> bool:
    """Whether the reader's function is more than a stub: it returns something, or fails trying.

    A stub gives None or Ellipsis, or raises NotImplementedError.
    """
    try:
        value = function(*args, **settings)
    except NotImplementedError:
        return False
    except (Exception, SystemExit):
        return True
    return value is not None and value is not Ellipsis


def on_arrays(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The loss as a function of logits (N, C) and labels (N,) as arrays, for `exercise.check`.

    It raises ValueError where a value is not finite.
    """

    @wraps(getattr(loss, "func", loss))  # a partial has no name of its own
    def called(logits: np.ndarray, labels: np.ndarray) -> Any:
        values = loss(Outputs(torch.from_numpy(logits), None), torch.from_numpy(labels))
        if isinstance(values, torch.Tensor) and not values.isfinite().all():
            raise ValueError(f"a loss is finite for large logits too; got {values.tolist()}")
        return values

    return called


def one_by_one(function: Callable[..., Any], *, rows: int) -> Callable[..., Any]:
    """The law of a loss or score: an image has the same value in any company, alone too.

    Args:
        function: of arrays, whose values are (N,).
        rows: how many of its arguments, the first ones, have a row an image.
    """

    def called(*given: np.ndarray) -> np.ndarray:
        each = range(len(given[0]))
        alone = [[part[i : i + 1] for part in given[:rows]] for i in each]
        return np.array([function(*one, *given[rows:]) for one in alone]).ravel()

    return called


def sure(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Logits (N, C) and labels (N,) in [0, C) or -1 for `exercise.check` of a loss.

    About every second draw is so large that a softmax is exactly 0 somewhere.
    """
    images, classes = rng.integers(1, 5), rng.integers(2, 5)
    logits = rng.normal(0, rng.choice([3, 3000]), (images, classes)).round(3)
    return logits, rng.integers(NEGATIVE, classes, images)


def line(asked: Mapping[tuple[str, str], Answers], rule: Rule) -> dict[str, float]:
    """How well a rule tells the known test images from each kind of other ones.

    Args:
        asked: as from `answers`.
        rule: f(answers) -> (N,), higher means more known.

    Returns:
        accuracy on the known digits; auroc_negative, auroc_unknown, auroc_letters, and
        auroc_pooled of the last two; oscr_unknown, the area. All in [0, 1].
    """
    known = asked["test", "known"]
    score, right = rule(known), known.right
    found = {side: rule(asked["test", side]) for side in ("negative", "unknown", "letters")}
    found["pooled"] = np.concatenate([found["unknown"], found["letters"]])
    measured = {f"auroc_{side}": metrics.auroc(score, other) for side, other in found.items()}
    area = metrics.oscr_area(score, right, found["unknown"])
    return {"accuracy": metrics.accuracy(right)} | measured | {"oscr_unknown": area}


def confidences(*, seed: int, letters: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What six confidences say about held-out images and about test images, after cross-entropy.

    Held out are the known validation digits, the negative ones, and some letters; the test has
    the known and the unknown test digits, and the other letters. Known images stand first.

    Args:
        seed: as for `answers`; no negative image is shown in training.
        letters: the held-out ones.

    Returns:
        Two frames, a row an image: side, right (accepting it is right), and of `CONFIDENCES` a
        column each, higher meaning surer.
    """
    asked = answers(losses.softmax, seed=seed, negatives=0.0)
    seen, drawn = asked["train", "known"], asked["test", "letters"]
    inside = drawn.rows["wnid"].str[-1].isin(list(letters)).to_numpy()
    held = [asked["val", "known"], asked["val", "negative"], _part(drawn, inside)]
    test = [asked["test", "known"], asked["test", "unknown"], _part(drawn, ~inside)]
    return _confident(held, seen), _confident(test, seen)


def ccr(asked: Mapping[tuple[str, str], Answers], rule: Rule, *, fpr: float) -> float:
    """`metrics.ccr_at_fpr` of the known test digits against the unknown ones."""
    known = asked["test", "known"]
    return metrics.ccr_at_fpr(rule(known), known.right, rule(asked["test", "unknown"]), fpr=fpr)


def table(asked: Mapping[tuple[str, str], Answers], rule: Rule) -> pd.DataFrame:
    """The test images, a row each, for `plots`.

    Columns sample, class (its id), role, label, pred, side (digits or letters) and score.
    """
    frames = []
    for (split, side), part in asked.items():
        if split == "test":
            columns = {"pred": part.logits.argmax(axis=1), "score": rule(part)}
            rows = part.rows[["sample", "wnid", "role", "label"]].rename(columns={"wnid": "class"})
            source = "letters" if side == "letters" else "digits"
            frames.append(rows.assign(**columns, side=source))
    return pd.concat(frames, ignore_index=True)


def columns(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Arguments of a choice for `exercise.check`: three confidences, one with ties; right (N,).

    The right ones stand first, so that a tie in the order of the rows flatters.
    """
    right = np.sort(rng.random(rng.integers(6, 30)) < 0.5)[::-1].copy()
    right[0], right[-1] = True, False
    sure = {name: right * pull + rng.normal(0, 1, len(right)) for name, pull in PULLS.items()}
    return sure | {"tied": (sure["weak"] > -1).astype(np.float64)}, right


def outputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arguments of a score of the second capstone, for `exercise.check`.

    logits (N, C) and features (N, D) of N images; seen (M, D), features of M training images, and
    labels (M,), in which each class has some.
    """
    images, more = rng.integers(2, 5), 6 * KNOWN
    features = np.abs(rng.normal(0, 2, (images + more, 3))).round(3)
    labels = rng.permutation(np.arange(more) % KNOWN)
    return rng.normal(0, 3, (images, KNOWN)).round(3), features[:images], features[images:], labels


def as_rule(score: Callable[..., np.ndarray], asked: Mapping[tuple[str, str], Answers]) -> Rule:
    """A score f(logits, features, seen, labels) as a rule; seen are the known training images."""
    seen = asked["train", "known"]
    return lambda part: score(part.logits, part.features, seen.features, seen.labels)


def beside(rows: Mapping[str, Mapping[str, Any] | None]) -> pd.DataFrame:
    """One line of numbers for each name; a line that is None reads "not written yet".

    Args:
        rows: by name, numbers by column, or None.
    """
    columns = list(next((row for row in rows.values() if row), ["result"]))
    blank = dict.fromkeys(columns, NOT_WRITTEN)
    lines = [{k: f"{v:.3f}" for k, v in row.items()} if row else blank for row in rows.values()]
    return pd.DataFrame(lines, index=list(rows), columns=columns)


def require(
    measure: Callable[[int], tuple[float, float]], *, seed: int, margin: float, what: str
) -> None:
    """Say what is gained over hidden seeds, with its interval; refuse less than the margin.

    Warnings of what is measured, and what it prints to stderr, are left out.

    Args:
        measure: f(seed) -> what the baseline and what the reader's function reach.
        seed: the first of `HIDDEN`.
        margin: that the mean gain must have; the interval must lie above 0.
        what: is measured.

    Raises:
        AssertionError: the mean is below the margin, or the 95 % interval of it, by Student's t
            over the seeds, holds 0.
    """
    with exercise.quiet():
        gains = np.array([np.subtract(*measure(seed + i)[::-1]) for i in range(HIDDEN)])
    mean, half = gains.mean(), STUDENT * gains.std(ddof=1) / np.sqrt(HIDDEN)
    interval = f"[{mean - half:+.3f}, {mean + half:+.3f}]"
    text = f"{what}: {mean:+.3f} {interval} over {HIDDEN} hidden seeds"
    assert mean >= max(margin, half), f"{text}; needed {margin:+.3f}, and an interval above 0"
    print(text)


def _part(asked: Answers, at: np.ndarray) -> Answers:
    return Answers(asked.logits[at], asked.features[at], asked.rows[at])


def _confident(parts: list[Answers], seen: Answers) -> pd.DataFrame:
    """The frame of `confidences`, of images in `parts`; `seen` is what Mahalanobis is fitted on."""
    fitted = scores.mahalanobis(seen.out, seen.labels, known=KNOWN)
    rules = CONFIDENCES | {"mahalanobis": fitted}
    frames = []
    for part in parts:
        columns = {name: rule(part.out, known=KNOWN) for name, rule in rules.items()}
        side = part.rows["wnid"].str.split("-").str[0].where(part.rows["role"] != "known", "known")
        frames.append(pd.DataFrame({"side": side.to_numpy(), "right": part.right} | columns))
    return pd.concat(frames, ignore_index=True)


def _trained(loss: Loss, images: datasets.Images, rows: pd.DataFrame, seed: int) -> torch.nn.Module:
    """A network after `EPOCHS` plain passes: `train.fit` without checkpoints and progress."""
    network = models.mlp(classes=KNOWN, features=WIDTH)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    settings = {"batch_size": BATCH, "seed": seed, "transform": AUGMENT["none"]}
    batches = datasets.batches(images, rows, shuffle=True, **settings)
    for epoch in range(1, EPOCHS + 1):
        for pixels, labels in batches(epoch):
            optimizer.zero_grad()
            loss(network(pixels), labels).mean().backward()
            optimizer.step()
    return network


def _asked(network: torch.nn.Module, images: datasets.Images, rows: pd.DataFrame) -> Answers:
    still = {"batch_size": 256, "seed": 0, "shuffle": False, "transform": AUGMENT["none"]}
    out = train.predict(network, datasets.batches(images, rows, **still))
    return Answers(out.logits, out.features, rows.reset_index(drop=True))


CONFIDENCES = {
    "softmax": scores.max_softmax_log_odds,
    "softmax in tenths": lambda out, *, known: scores.max_softmax(out, known=known).round(1),
    "above one half": lambda out, *, known: (scores.max_softmax(out, known=known) > 0.5) * 1.0,
    "logit": scores.max_logit,
    "norm": scores.feature_norm,
}
