"""What `osnb status` and `osnb show` print of a run.json, whoever wrote it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_cli
from finished import finish
from refusals import refused

from osnb.book import record

ESCAPE = "a\x1b[2J\u202eb[bold]:smile:\x07"
WRITTEN = r"a\x1b[2J\u202eb[bold]:smile:\x07"


def osnb(*words):
    """What `osnb WORDS` prints."""
    code, out, err = test_cli.osnb(*words)
    assert (code, err) == (0, "")
    return out


@pytest.fixture
def change(project):
    """A function that sets values in the run.json of one of two finished runs."""
    finish(project, "90_works", run="other")
    folder = finish(project, "12_fixture_train")

    def change(**values):
        record.write(folder, json.loads((folder / "run.json").read_text()) | values)
        return folder

    return change


def test_what_a_terminal_would_obey_is_written_out(change):
    error = {"name": ESCAPE, "value": ESCAPE, "cell": 1, "tail": [ESCAPE]}
    folder = change(
        finished=ESCAPE, host=ESCAPE, commit=ESCAPE, error=error, parameters={ESCAPE: ESCAPE}
    )
    pq.write_table(pa.table({ESCAPE: [1.0, None]}), folder / "history.parquet")
    for said, times in ((osnb("status"), 0), (osnb("show", "small"), 8)):
        assert not [x for x in said if not x.isprintable() and x != "\n"]
        assert said.replace("\\\\", "\\").count(WRITTEN) == times
    assert r"a\x1b[2J\u202eb[bold" in osnb("status")
    change(run=ESCAPE)
    assert WRITTEN in refused("show", "smal")


@pytest.mark.parametrize(
    "values",
    [
        {"measures": 7},
        {"measures": {"loss": "low"}},
        {"seconds": "z"},
        {"finished": 3},
        {"error": 5},
        {"used": "z"},
        {"attempts": 3},
        {"parameters": 3},
        {"run": ["small"]},
    ],
)
def test_a_run_json_that_says_strange_things_hides_no_other_run(change, values):
    change(**values)
    broken = {"parameters", "run"} & values.keys()  # without these it is no record of a run,
    broken |= {"seconds", "error", "attempts"} & values.keys()  # nor with such ones
    assert ("1 failed, 1 done" if broken else "2 done") in osnb("status")
    assert "90_works" in osnb("status")
    assert "90_works/other: done in 1 s" in osnb("show", "other")
    if "run" not in values:
        assert osnb("show", "12_fixture_train/small")


def test_json_holds_no_infinity_and_no_nan(change):
    change(measures={"loss": float("nan"), "worst": [float("inf")]})
    (found,) = json.loads(osnb("show", "small", "--json", "-"), parse_constant=pytest.fail).values()
    assert found["measures"] == {"loss": None, "worst": [None]}


def test_json_is_written_where_a_link_leads(change, tmp_path):
    change()
    (tmp_path / "link").symlink_to(tmp_path / "there.json")
    osnb("show", "small", "--json", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "there.json").read_text())


def test_a_measure_that_training_did_not_find_is_left_out(change):
    change(measures={"loss": None, "best": 0.5})
    assert "best 0.500" in osnb("status")
