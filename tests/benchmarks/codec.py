"""Does a network tell images by their file? Known test images, saved once more as JPEG, are asked.

Who teaches a network to be unsure of external images that come in another codec than the known
ones teaches it that codec. (CIFAR is uncompressed, Tiny ImageNet is JPEG.)
"""

import io

import numpy as np
import pandas as pd
from PIL import Image

from osnb import datasets, experiment, metrics, scores
from osnb.book import predicting
from osnb.datasets.augment import AUGMENT
from osnb.datasets.images import kept
from osnb.experiment.predicted import loaded

QUALITIES = (95, 75, 50)


def saved(images, quality):
    """(N, C, S, S) uint8 as they come back from JPEG files."""
    found = []
    for pixels in images.transpose(0, 2, 3, 1).squeeze():
        Image.fromarray(pixels).save(file := io.BytesIO(), "jpeg", quality=quality)
        found.append(np.asarray(Image.open(file)).reshape(*images.shape[2:], -1))
    return np.stack(found).transpose(0, 3, 1, 2)


def asked(run, *, data=""):
    """A row for each set of images that a finished training run is asked about."""
    key, parameters, files = predicting.finished(run)
    exp = experiment.of(parameters)
    parts = exp.parts(experiment.Machine.of(parameters["machine"], data=data))
    made, known = loaded(exp, parts, files), parts.known
    places = pd.Series(range(len(parts.images.rows)), parts.images.rows["sample"])

    def said(rows, quality=0):
        pixels = parts.images.read(places[rows["sample"]].to_numpy()).numpy()
        pixels = saved(pixels, quality) if quality else pixels
        images = kept(rows.reset_index(drop=True), lambda i: pixels[i], pixels.shape[1:])
        still = {"batch_size": 256, "seed": 0, "shuffle": False, "transform": AUGMENT["none"]}
        out = made.says(datasets.batches(images, images.rows, **still))
        right = (scores.predicted(out, known=known) == rows["label"].to_numpy()).mean()
        return scores.max_softmax(out, known=known), right

    test = parts.test.rows
    sets = {"known": (test[test["label"] >= 0],)}
    sets |= {f"known, JPEG {q}": (*sets["known"], q) for q in QUALITIES}
    sets |= {"near": (test[test["label"] < -1],), "external": (parts.of("val", "negative"),)}
    first, rows = said(*sets["known"])[0], []
    for name, what in sets.items():
        if len(what[0]):
            softmax, right = said(*what)
            row = {"run": key, "images": name, "softmax": float(softmax.mean())}
            row["auroc"] = metrics.auroc(first, softmax)
            rows.append(row | {"accuracy": float(right) if "known" in name else np.nan})
    return rows


def show(report):
    """What rich prints for the rows of some runs."""
    table = pd.DataFrame(report["rows"]).to_string(index=False, float_format="{:.3f}".format)
    return [table, "softmax: the mean of the largest; auroc: of the known images against these"]
