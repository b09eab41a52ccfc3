"""Scores that somebody else has computed, or their logits: the columns of a file, checked."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from osnb.base.labels import NEGATIVE, UNKNOWN, roles, written
from osnb.base.outputs import Outputs
from osnb.scores.features import zero_shot
from osnb.scores.rules import POST_HOC, READ, SCORES, feature_norm, max_softmax, predicted

LOGIT = re.compile(r"logit_\d+")
INDEX = {"", "__index_level_0__"}  # pandas' row numbers in csv and parquet
TOLD = {"sample", "source", "role", "group", "class", "label", "labels", "pred", "logits"}
TOLD |= {"images", "texts"}  # embeddings
TOLD |= {"target", "target_log_odds"}  # of our tables: they know the label, so they are no scores
ALIASES = {  # names that others give to our columns
    "label": ("labels", "y_true", "target", "targets", "true_label", "ground_truth", "gt", "y"),
    "pred": ("preds", "prediction", "predictions", "predicted", "y_pred"),
    "sample": ("path", "file", "filename", "file_name", "image", "image_path", "id"),
}
NEGLABEL = 0.01  # temperature of Jiang et al. 2024; MCM's is 1, Ming et al. 2022
ROUNDED = 1e-3  # how far from 1 a row of probabilities may be that float16 has rounded
SHARES = (
    "each row of logits sums to 1: they seem to be probabilities, whose softmax is another; "
    "give their logarithms"
)
ROLE_WORDS = {"unknown": UNKNOWN, "negative": NEGATIVE}  # of labels that are text
RULES = {k: rule for k, rule in {**SCORES, **POST_HOC}.items() if rule is not feature_norm}


class Own(NamedTuple):
    """N samples with scores of any origin.

    Attributes:
        label: (N,) int64, a known class, NEGATIVE or UNKNOWN.
        pred: (N,) the predicted class; it counts where the sample is known.
        scores: by name, (N,) float64 each, higher meaning more known.
        known: K, known classes among the logits; 0 without logits.
        sample: (N,) ids, or () if the file has none.
        unit: (N,) id of the true class, known or not, or () if the file has none.
        classes: names of the known classes, if the file's labels are text, else ().
        notes: sentences on how the file was read, where that was not plain.
        source: (N,) name of the set that the sample is of, or () if the file has none.
    """

    label: np.ndarray
    pred: np.ndarray
    scores: dict[str, np.ndarray]
    known: int
    sample: np.ndarray
    unit: np.ndarray
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: np.ndarray = ()


def own(columns: Mapping[str, np.ndarray], *, known: int = 0, names: Sequence[str] = ()) -> Own:
    """What the columns of a file say of its samples.

    Args:
        columns: label (N,); then pred (N,) and scores (N,) each, or logits, (N, C) under that name
            or (N,) each as logit_0 to logit_{C-1}, or embeddings, images (N, D) and texts (C, D),
            of a network that compares both; sample, class and source (N,) are kept. Names
            of `ALIASES` do where ours are not there. Labels are whole numbers, or names of classes,
            "unknown" and "negative" with a pred of names. Without a label -2, -1 is unknown.
        known: K, the first of the C logits or texts that are known classes; 0 for all of them.
            The other texts are NegLabel's negative words.
        names: scores to keep; all if empty.

    Returns:
        Every rule of `SCORES` and `POST_HOC` that needs logits alone, if there are logits. Texts
        give logits (`zero_shot`, temperature .01), MCM, and NegLabel as log-odds, which never tie
        at 1. Then the columns without another meaning, which replace a rule of their name. Text is
        no score, nor an empty column, nor, unless asked for, what is not one number a sample.

    Raises:
        ValueError: a column is missing, of another length or no numbers, holds a NaN, a label is
            no class, no sample is known, or a name has a lone surrogate in it.
    """
    columns, notes = _renamed(columns)
    columns, classes = _numbered(columns)
    label = _labels(columns)
    if (label == NEGATIVE).any() and not (label == UNKNOWN).any():
        label = np.where(label == NEGATIVE, UNKNOWN, label)
        notes.append("label -1 is read as unknown, since no label is -2; beside -2 it is negative")
    table, known = _of_network(columns, label, known, notes)
    given = {k: v for k, v in columns.items() if k not in TOLD | INDEX and not LOGIT.fullmatch(k)}
    table |= _asked(given, label, names, notes, alone=not table)
    pred = columns.get("pred", table.pop("pred", None))
    missing = [name for name in names if name not in table]
    if pred is None or not table or missing:
        absent = "pred" if pred is None else missing[0] if missing else "of scores, or logits"
        raise ValueError(_needs(absent, columns))
    pred = _like(label, pred, "pred")
    _whole(pred[label >= 0], "pred")
    if never := [name for i, name in enumerate(classes) if i in label and i not in pred]:
        notes.append(f"never predicted: {', '.join(never)}; is it a class of those taught?")
    scores = {k: _score(_like(label, table[k], k), k) for k in (names or table)}
    sample, unit, source = _ids(columns, label)
    return Own(label, pred, scores, known, sample, unit, classes, tuple(notes), source)


def _asked(
    given: dict[str, np.ndarray],
    label: np.ndarray,
    names: Sequence[str],
    notes: list,
    *,
    alone: bool,
) -> dict[str, np.ndarray]:
    """The columns that are asked for, or else can be scores; a note says which others cannot."""
    kinds = {k: np.asarray(v).dtype.kind for k, v in given.items() if k not in names}
    if words := [k for k, kind in kinds.items() if kind in "OUS"]:
        notes.append(f"no score, being text or empty: {', '.join(words)}")
    numbers = [
        k for k, kind in kinds.items() if kind in "iuf" and np.shape(given[k]) == label.shape
    ]
    others = [k for k in kinds if k not in (*words, *numbers)]
    if alone and not numbers:  # the first is refused by its name
        numbers, others = others, []
    if others and not names:
        notes.append(f"no score, of another shape or kind: {', '.join(others)}")
    return {k: given[k] for k in (names or numbers) if k in given}


def _of_network(
    columns: Mapping[str, np.ndarray], label: np.ndarray, known: int, notes: list[str]
) -> tuple[dict[str, np.ndarray], int]:
    """The rules of logits, or of embeddings, if there are any, and how many classes are known."""
    logits = _logits_of(columns)
    if compared := logits is None and np.ndim(columns.get("texts")) == 2:
        if "images" not in columns:
            raise ValueError(_needs("images", columns))
        logits = zero_shot(columns["images"], columns["texts"], temperature=NEGLABEL).logits
    if logits is None:
        if known:
            raise ValueError(f"known={known} counts logits or texts, and there are none")
        return {}, 0
    notes += shares(logits)
    known = known or logits.shape[1]
    table = _computed(logits, label, known)
    if compared:
        table["mcm"] = max_softmax(Outputs(logits[:, :known] * NEGLABEL), known=known)
    if compared and logits.shape[1] > known:
        table["neglabel"] = READ["log_odds"](Outputs(logits), known=known)
    return table, known


def shares(logits: np.ndarray) -> list[str]:
    """What there is to say of logits (N, C) that seem to be probabilities."""
    alike = (logits >= 0).all() and np.allclose(logits.sum(axis=1), 1, atol=ROUNDED)
    return [SHARES] if alike else []


def _ids(columns: Mapping[str, np.ndarray], label: np.ndarray) -> tuple[np.ndarray, ...]:
    """`sample`, `class` and `source`, empty where there is none or none has a value."""
    ids = []
    for name in ("sample", "class", "source"):
        column = _like(label, columns[name], name) if name in columns else label[:0]
        if column.dtype == object:
            column = np.where(np.equal(column, None), "", column)  # as csv files have it
            column = column if any(column) else label[:0]
        written(map(str, column), name)
        ids.append(column)
    return tuple(ids)


def _renamed(columns: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The columns under our names, and a note for each that had another."""
    columns, notes = dict(columns), []
    for ours, theirs in ALIASES.items():
        if ours not in columns and (found := [name for name in theirs if name in columns]):
            columns[ours] = columns.pop(found[0])
            if found[0] != "labels":
                notes.append(f"column {found[0]} is read as {ours}")
    return columns, notes


def _numbered(columns: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The columns with text labels and predictions as numbers, and the names of the classes.

    Raises:
        ValueError: one of both is text and the other is not.
    """
    label, pred = (_numbers(columns.get(name)) for name in ("label", "pred"))
    if len({_is_text(label), _is_text(pred)}) == 2:  # perhaps numbers, but for those of roles
        label, pred = (_numbers(column, ROLE_WORDS) for column in (label, pred))
    text = [_is_text(label), _is_text(pred)]
    if not any(text) or label is None or pred is None:  # refused as what is missing
        columns |= {k: v for k, v in (("label", label), ("pred", pred)) if v is not None}
        return columns, ()
    if not all(text):
        raise ValueError("label and pred both need names of classes, or both whole numbers")
    label, pred = ([_role(word) for word in column] for column in (label, pred))
    names = sorted({*pred, *label} - {*ROLE_WORDS})
    written(names, "label")
    number = ROLE_WORDS | {name: place for place, name in enumerate(names)}
    coded = {"label": [number[x] for x in label], "pred": [number[x] for x in pred]}
    return columns | {k: np.array(v) for k, v in coded.items()}, tuple(names)


def _role(word: str) -> str:
    """The name of a class as it is; of a role in small letters."""
    return word.lower() if word.lower() in ROLE_WORDS else word


def _is_text(column: np.ndarray | None) -> bool:
    return column is not None and np.asarray(column).dtype.kind in "OUS"


def _numbers(column: np.ndarray | None, roles: Mapping[str, int] | None = None):
    """A column of text as numbers where every word is one, or a role that has one, else as text."""
    if not _is_text(column):
        return column
    words = np.array([str(word) for word in column], object)
    try:
        return np.array([(roles or {}).get(word.lower(), word) for word in words], np.float64)
    except ValueError:
        return words


def _needs(name: str, columns: Mapping[str, np.ndarray]) -> str:
    """What is missing, what there is, and the names that were perhaps meant."""
    near = get_close_matches(name, columns, n=1)
    hint = f" (is it {near[0]}?)" if near else ""
    if len(columns) == 1 and ";" in next(iter(columns)):
        hint = ", and commas between columns"
    return f"needs a column {name}{hint}; there are: {', '.join(columns) or 'none'}"


def _labels(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """(N,) int64, checked."""
    label = columns.get("label")
    if label is None:
        raise ValueError(_needs("label", columns))
    if np.ndim(label) != 1 or not len(label):
        raise ValueError(f"needs (N,) labels, N >= 1; got shape {np.shape(label)}")
    label = _whole(label, "label").astype(np.int64)
    if not (roles(label) == "known").any():
        raise ValueError(f"needs known samples, label >= 0; none of {len(label)} is one")
    return label


def _logits_of(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """(N, C) in the order of their numbers, if there are any."""
    parts = [name for name in columns if LOGIT.fullmatch(name)]
    if missing := [f"logit_{c}" for c in range(len(parts)) if f"logit_{c}" not in columns]:
        raise ValueError(
            f"needs logit_0 to logit_{len(parts) - 1} for {len(parts)} columns of logits; "
            f"there is no {missing[0]}"
        )
    if parts:
        names = [f"logit_{c}" for c in range(len(parts))]
        return np.column_stack([_score(columns[name], name) for name in names])
    if (logits := columns.get("logits")) is not None:
        if np.ndim(logits) != 2:
            raise ValueError(f"logits needs shape (N, C); got {np.shape(logits)}")
        _score(logits, "logits")
    return logits


def _computed(logits: np.ndarray, label: np.ndarray, known: int) -> dict[str, np.ndarray]:
    """`pred` and every rule that needs logits alone."""
    if len(logits) != len(label):
        raise ValueError(f"needs a label for each row; got {len(logits)} logits, {len(label)}")
    if label.max() >= known:
        raise ValueError(f"needs labels below {known} known classes; got {label.max()}")
    out = Outputs(logits)
    rules = {name: rule(out, known=known) for name, rule in RULES.items()}
    return {"pred": predicted(out, known=known)} | rules


def _like(label: np.ndarray, column: np.ndarray, name: str) -> np.ndarray:
    if np.shape(column) != label.shape:
        raise ValueError(f"{name} needs shape {label.shape}, as label; got {np.shape(column)}")
    return column


def _score(column: np.ndarray, name: str) -> np.ndarray:
    """(N,) float64, checked."""
    if column.dtype.kind not in "iuf":
        raise ValueError(f"{name} needs numbers, else choose scores by name; got {column.dtype}")
    if missing := np.isnan(column).reshape(len(column), -1).any(axis=1).sum():
        raise ValueError(f"{name} needs a number in each row; {missing} of {len(column)} are NaN")
    whole = len(column) and column.dtype.kind in "iu"
    if column.itemsize > 8 or (whole and max(int(column.max()), -int(column.min())) > 2**53):
        raise ValueError(f"{name} needs numbers that float64 holds exactly; got {column.dtype}")
    return column.astype(np.float64)


def _whole(column: np.ndarray, name: str) -> np.ndarray:
    """Whole numbers, whichever their type: a file of text may have written 3 as 3.0."""
    column = _score(column, name)
    if (wrong := column[~(np.abs(column) <= 2**53) | (np.trunc(column) != column)]).size:
        raise ValueError(f"{name} needs whole numbers; got {wrong[0]:g}")
    return column
