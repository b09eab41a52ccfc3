"""What `osnb export --publish` adds: each file is read back by a library that reads its format."""

import hashlib
import io
import json
import re
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest
import yaml
from huggingface_hub import ModelCard

from osnb import metrics
from osnb.base import workbook
from osnb.book import archive
from osnb.book.archive import publishing
from osnb.evidence import gallery

ROOT = workbook.PACKAGE.parent
CARD = "12_fixture_train--small"


@pytest.fixture
def published(packed, project, tmp_path):
    """The archive of a paper's three runs with what is added, and what `pack` said."""
    shutil.copy(ROOT / "CITATION.cff", project.folder)
    said = archive.pack(["*"], tmp_path / "public.zip", publish=True)
    return zipfile.ZipFile(tmp_path / "public.zip"), said


def scores():
    """Twelve known and eight unknown classes, five images each."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.r_[np.arange(12), np.full(8, -2)], 5)
    table = pd.DataFrame({"label": label, "pred": label.clip(0)})
    table["role"] = np.where(label < 0, "unknown", "known")
    table["class"] = np.repeat([f"c{i:02}" for i in range(20)], 5)
    return table.assign(group="", max_logit=rng.normal(size=100) + 2 * (label >= 0))


def test_the_citation_is_this_projects_with_the_runs_date_and_papers(published):
    stated = yaml.safe_load(published[0].read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "date-released"} <= set(stated)
    assert stated["type"] == "dataset"
    assert len(stated["references"]) == 3


def test_the_citation_gives_the_commit_of_the_run_that_was_made_last(published):
    runs = {"a": {"finished": "2026-01-02", "commit": "1"}, "b": {"finished": "2026-01-01"}}
    for b in ({"commit": "f"}, {}):
        stated = yaml.safe_load(publishing._citation(runs | {"b": runs["b"] | b}))
        assert (stated["date-released"], stated["commit"]) == ("2026-01-02", "1")


def test_bibtex_has_the_methods_of_each_table_and_no_other(published):
    text = published[0].read("methods.bib").decode()
    entries = dict(re.findall(r"@inproceedings\{(\w+),\n(.*?)\n\}", text, re.DOTALL))
    assert "max_logit" in entries
    assert "odin" not in entries  # no table here has it
    assert "https://arxiv.org/abs/2110.06207" in entries["max_logit"]
    assert "12_fixture_train/small" in entries["max_logit"]
    assert text.count("{") == text.count("}")


def test_every_source_of_a_method_has_a_link_and_a_year():
    table = pd.read_csv(workbook.PACKAGE / "published" / "methods.csv")
    assert table["name"].is_unique
    assert table["url"].str.match(r"https://(arxiv\.org/abs/\d{4}\.\d{5}|doi\.org/10\.)").all()
    for row in table[table["url"].str.contains("arxiv")].itertuples():
        assert abs(int(row.url[-10:-8]) + 2000 - row.year) <= 2, row.name


def test_codecheck_lists_the_artefacts_among_the_runs(published, monkeypatch):
    folder = workbook.out() / "figures" / "13_fixture_results" / "small"
    made = {"paper": "p", "artefact": "Table 1", "title": "t", "run": "small", "file": "table"}
    photographs = made | {"kind": "figure", "file": "photographs"}  # kept as png, by itself
    rows = [made | {"kind": "table"}, photographs]
    rows = pd.DataFrame(rows).assign(folder=folder)
    monkeypatch.setattr(gallery, "artefacts", lambda *_: rows)
    runs = {"13_fixture_results/small": {"outputs": {"table.csv": "0" * 64}}}
    stated = yaml.safe_load(publishing._codecheck(runs))
    assert stated["version"].startswith("https://codecheck.org.uk/spec")
    (entry,) = stated["manifest"]
    assert entry["file"] in published[0].namelist()
    assert entry["comment"] == "p, Table 1: t"


def test_a_card_has_each_measure_with_its_interval_and_the_protocols_hash(published, tmp_path):
    archived = published[0]
    (tmp_path / "card.md").write_bytes(archived.read(f"cards/{CARD}.md"))
    card = ModelCard.load(tmp_path / "card.md")
    names = {result.metric_type for result in card.data.eval_results}
    assert {"auroc", "oscr_area"} <= names
    sha256 = hashlib.sha256(archived.read(f"protocols/{CARD}.csv")).hexdigest()
    assert sha256 in card.text


def test_a_card_names_no_params_file_that_says_otherwise(packed, project, tmp_path):
    shutil.copy(ROOT / "CITATION.cff", project.folder)
    project.write("12_fixture_train", "rate: 0.125\n")
    archive.pack(["12_fixture_train/small"], tmp_path / "x.zip", publish=True)
    card = zipfile.ZipFile(tmp_path / "x.zip").read(f"cards/{CARD}.md").decode()
    assert "with the parameters in `runs/12_fixture_train/small/run.json`" in " ".join(card.split())
    assert "params/" not in card


def test_the_measures_are_those_of_metrics():
    table = scores()
    drawn, unit, notes = publishing._measured(table, "max_logit")
    known, unknown = (part["max_logit"] for _, part in table.groupby(table["label"] < 0))
    value, low, high = drawn["auroc"]
    assert value == pytest.approx(metrics.auroc(known.to_numpy(), unknown.to_numpy()))
    assert low < value < high
    assert unit == "class"
    assert any(note.startswith("few classes, 12 known, 8 unknown") for note in notes)


def test_a_card_draws_each_source_by_itself():
    table = scores().assign(source=np.repeat(["known", "large", "small"], [60, 10, 30]))
    table.loc[table["source"] == "large", "max_logit"] += 5
    ends = [
        publishing._measured(rows, "max_logit")[0]["auroc"]
        for rows in (table, table.drop(columns="source"))
    ]
    apart, pooled = (high - low for _, low, high in ends)
    assert apart < 0.75 * pooled


def test_a_card_has_a_dash_for_what_too_few_images_decide_and_says_why():
    card = publishing._card("a/b", {"params": None}, scores(), "0").decode()
    assert "| ccr_at_fpr_0.01 | - | - | - |" in card  # of 40 unknown images
    assert re.search(r"\| ccr_at_fpr_0.1 \| 0\.\d+ \| - \| - \|", card)
    assert "- no CCR at FPR 0.001, 0.01: that is less than one of 40 unknown images." in card


def test_a_card_draws_images_where_a_role_has_one_class():
    for at in (slice(0, 60), slice(60, 100)):
        table = scores()
        table.loc[table.index[at], "class"] = "one"
        card = publishing._card("a/b", {"params": None}, table, "0").decode()
        assert "with 95 % intervals over test images" in card


@pytest.mark.parametrize(("left", "told"), [(-1, "Negative test images"), (0, "All test images")])
def test_a_card_says_what_was_tested_where_nothing_was_unknown(left, told):
    table = scores()
    table.loc[table["label"] < 0, ["label", "role"]] = [-1, "negative"]
    card = publishing._card("a/b", {"params": None}, table[table["label"] >= left], "0").decode()
    assert told in card
    assert ("| auroc |" in card) == (left < 0)


def test_a_list_of_classes_has_each_once(published):
    rows = pd.read_csv(io.BytesIO(published[0].read(f"protocols/{CARD}.csv")))
    assert rows["class"].is_unique
    assert set(rows["role"]) == {"known", "negative", "unknown"}


def test_without_croissants_library_one_line_says_so(packed, project, tmp_path, monkeypatch):
    shutil.copy(ROOT / "CITATION.cff", project.folder)
    for module in (publishing, archive):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    said = archive.pack(["*"], tmp_path / "without.zip", publish=True)
    assert publishing.LACKING in said
    names = zipfile.ZipFile(tmp_path / "without.zip").namelist()
    assert not [name for name in names if re.fullmatch(r"protocols/.*\.json", name)]


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # rdflib's own
def test_croissant_describes_the_list_so_that_its_library_reads_the_rows(tmp_path):
    ml = pytest.importorskip("mlcroissant")
    classes = publishing._classes(scores())
    (tmp_path / "p.csv").write_bytes(classes)
    text = publishing._croissant("p", {"finished": "2026-11-24T00:00:00+00:00"}, classes)
    (tmp_path / "p.json").write_bytes(text)
    rows = [*ml.Dataset(jsonld=tmp_path / "p.json").records("classes")]
    assert len(rows) == 20
    assert {row["classes/role"] for row in rows} == {b"known", b"unknown"}
    assert json.loads(text)["datePublished"].startswith("2026")


def test_what_is_published_comes_in_again(published, tmp_path):
    assert set(archive.unpack(tmp_path / "public.zip").values()) == {"here already, the same"}


def test_a_card_is_of_unknown_images_where_negatives_were_tested_too():
    table = scores()
    table.loc[table["class"] > "c15", ["label", "role"]] = [-1, "negative"]
    card = publishing._card("a/b", {"params": None}, table, "0").decode()
    assert "Unknown test images" in card
