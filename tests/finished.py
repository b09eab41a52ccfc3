"""Finished runs without a kernel, for the tests of archives and stamps."""

import json

import numpy as np
import pandas as pd

from osnb.base import stamps, workbook
from osnb.book import record, runs
from osnb.evidence import tables

EMPTY = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": []}


def scores(seed):
    """Four rows and one rule."""
    return pd.DataFrame(
        {
            "sample": list("abcd"),
            "source": "digits",
            "role": ["known", "known", "negative", "unknown"],
            "group": "",
            "class": list("0157"),
            "label": [0, 1, -1, -2],
            "pred": [0, 1, 0, 1],
            "max_logit": np.random.default_rng(seed).normal(size=4),
        }
    )


def finish(project, notebook, run="small", inputs=None, **parameters):
    """Make a run of a notebook of the project as `osnb run` would leave it; its folder."""
    project.add("works", notebook)
    text = "".join(f"{key}: {value}\n" for key, value in parameters.items() if key != "seed")
    project.write(notebook, f"run: {run}\n{text}", run=run)
    source = project.folder / "notebooks" / f"{notebook}.ipynb"
    values = workbook.declared(source) | parameters | {"run": run}
    begun = runs.begin(notebook, values)
    begun.save("table", table=pd.DataFrame({"seed": [values["seed"]]}), latex="x", inputs=inputs)
    if notebook.endswith("_train"):
        history = pd.DataFrame({"epoch": [1, 2], "loss": [0.5, 0.25], "accuracy": [0.5, 0.75]})
        history.to_parquet(begun.directory / "history.parquet")
        for name in ("scores", "scores_best"):
            begun.save(name, table=scores(values["seed"]), inputs={"rows": "0"})
        (begun.directory / "checkpoint.pt").write_bytes(b"not for an archive")
    (begun.directory / "executed.ipynb").write_text(json.dumps(EMPTY))
    content = begun.stamp() | {"state": "done", "code": stamps.of(begun.follows["goldens"])}
    content |= {"parameters": values | {"run": begun.name}, "inputs": inputs or {}}
    del content["versions"]
    content |= record.circumstances() | {"finished": record.now(), "seconds": 1.0}
    content |= {"outputs": runs.results(begun.directory), "files": runs.beside(begun.directory)}
    record.write(begun.directory, content)
    runs.publish(begun.directory, project.folder / "figures" / notebook / begun.name)
    return begun.directory


def sign(folder):
    """Let run.json say of a run's files what they are now."""
    found = record.read(folder)
    found |= {"outputs": runs.results(folder), "files": runs.beside(folder)}
    record.write(folder, found)


def collecting(monkeypatch, asked, rows, **attrs):
    """Let `tables.collect` find these rows where (notebook, size) is what is asked, else none."""

    def collect(*words):
        if words[:2] != asked:
            raise FileNotFoundError(words[0])
        frame = pd.DataFrame(rows)
        frame.attrs |= attrs
        return frame

    monkeypatch.setattr(tables, "collect", collect)


def paper(project):
    """Two training runs and a results run that has read them; their folders."""
    trained = [finish(project, "12_fixture_train", seed=seed) for seed in (0, 1)]
    read = {folder.name: stamps.data(folder) for folder in trained}
    return [*trained, finish(project, "13_fixture_results", inputs=read)]
