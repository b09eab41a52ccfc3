"""Params files hold against what their notebooks, readers and the papers say."""

import re
from itertools import chain

import pytest
import torch
import yaml
from test_datasets import make_cifar, make_svhn

from osnb import datasets, experiment, models, protocols
from osnb.base import workbook
from osnb.book import run
from osnb.book.run import needs
from osnb.evidence import tables
from osnb.experiment import layers
from osnb.protocols import hierarchy
from osnb.protocols.kim import far_classes

FILES = sorted((workbook.root() / "params").glob("*/*.yaml"))


def test_each_line_of_repeats_matches_runs_and_asks_for_seeds_or_all_splits_of_their_benchmark():
    params, benchmarks = workbook.root() / "params", layers.catalogue("benchmarks")["benchmarks"]
    for pattern, counts in yaml.safe_load((params / "repeats.yaml").read_text()).items():
        found = [*params.glob(f"{pattern}.yaml")]
        assert found, f"{pattern} in params/repeats.yaml matches no params file"
        if counts == "later":  # of the cross table alone, and never the first of several seeds
            firsts = [run.plan(file) for file in found]
            assert all(run.later(first) and not run.repeated(first) for first in firsts)
            continue
        ((key, count),) = counts.items()
        for file in found:
            first = run.plan(file)
            more = run.repeated(first)  # twice as many, if two lines match
            names = [f"{file.parent.name}/{file.stem}-{key}{i}" for i in range(1, count)]
            assert [str(each) for each in more] == names
            assert not run.later(first)
            for i, each in enumerate(more, 1):
                assert each.parameters == first.parameters | {"run": each.run, key: i}
            facts = benchmarks[first.parameters["benchmark"]]["mini"]
            assert key == "seed" or count == facts["splits"]
    assert run.repeated(run.plan(params / "00_tour" / "mini.yaml")) == []


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("sead=3", "seed"),
        ("thread=2", "threads"),
        ("benchmrk=p1", "benchmark"),
        ("epoch=3", "epochs"),
    ],
)
def test_a_misspelt_name_is_held_against_parameters_and_settings_and_all_are_listed(word, nearest):
    file = workbook.root() / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    name, _, value = word.partition("=")
    said = f"nothing reads {word} .*nearest is {nearest}; there are .*epochs, .*parameters are (.*)"
    with pytest.raises(run.Refused, match=said) as refused:
        run.plan(file, {name: value})
    listed = re.search(said, str(refused.value))[1].split(", ")
    for notebook in sorted({x.parent.name for x in FILES if x.parent.name.endswith("_train")}):
        declared = workbook.declared(workbook.root() / "notebooks" / f"{notebook}.ipynb")
        assert {"run", *listed} == {*declared}


PAPER = [file for file in FILES if file.stem.startswith("paper_")]
PAPER = [file for file in PAPER if not file.stem.endswith("_released")]  # nothing is trained


@pytest.mark.parametrize("file", PAPER, ids=lambda file: file.stem)
def test_a_file_of_a_papers_size_states_what_its_sources_leave_open(file):
    settings = experiment.of(run.plan(file).parameters).settings
    stated = {"weight_decay": f"{settings['optimizer']['weight_decay']:g}"}
    stated |= {"precision": settings["precision"], "normalise": settings.get("normalise", "none")}
    comment = " ".join(line.removeprefix("# ") for line in file.read_text().splitlines())
    said = comment[comment.index("Stated here: ") :]
    assert {name: re.search(rf"\b{name}=([\w.-]*\w)", said)[1] for name in stated} == stated
    warm = settings["schedule"] == "warm_restarts_released"
    assert ("the text has 20 (App. D.2), schedule=warm_restarts" in said) == warm


# Paper 3 at its own size: no file has been run, so the classes are held against what the readers
# make of folders named as the archives name them.

KIM = {
    stem: found.settings
    for stem, found in experiment.described("31_kim_train").items()
    if found.benchmark.size == "paper"
    and not stem.startswith("paper_own_")  # on a part of the data
}
CIFAR100 = (  # in the order of the labels, as its archive has them
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus "
    "butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch "
    "crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo "
    "keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse "
    "mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy "
    "porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper "
    "snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television "
    "tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"
)
SCENES = "bedroom bridge church_outdoor classroom conference_room dining_room kitchen"
SCENES += " living_room restaurant tower"


def touch(root, *folders, suffix="jpg"):
    """An empty file in each folder: a reader lists files and opens none before it is asked to."""
    for folder in folders:
        (root / folder).mkdir(parents=True)
        (root / folder / f"{folder.replace('/', '_')}.{suffix}").touch()


def archives(root, protocol):
    """Every class of the data sets of a benchmark, in folders and lists named as theirs are."""
    if protocol == "imagenet200":
        touch(root, *(f"{part}/{wnid}" for part in ("train", "val") for wnid in hierarchy.ILSVRC))
        of = {source: far_classes(source)["name"] for source in ("Food-101", "Places-365")}
        touch(root / "food-101/images", *of["Food-101"].str.replace(" ", "_"))
        touch(root / "places365_standard/val", *of["Places-365"].str.replace("/", "-"))
        objects = [f"{i:03}.{name}" for i, name in enumerate(far_classes("Caltech-256")["name"], 1)]
        cut = ("buddha", "sunflower", "watch", "airplanes")  # some of those that end so
        objects = [name + "-101" * name.endswith(cut) for name in objects]
        touch(root / "256_ObjectCategories", *objects, "257.clutter")
        return
    make_cifar(root, "CIFAR100", CIFAR100.split())
    make_svhn(root, range(1, 11))
    touch(root, *(f"train/{wnid}/images" for wnid in hierarchy.TINY_IMAGENET))
    lines = [f"{i}.JPEG\t{wnid}\t0\t0\t62\t62\n" for i, wnid in enumerate(hierarchy.TINY_IMAGENET)]
    (root / "val").mkdir()
    (root / "val/val_annotations.txt").write_text("".join(lines))
    touch(root / "lsun", *SCENES.split())
    textures = protocols.PROTOCOLS["cifar40"]().query("source == 'DTD'")["wnid"]
    touch(root / "dtd/images", *textures)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The data of each benchmark; files that are only read."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("cifar40", "imagenet200")}
    for protocol, root in made.items():
        archives(root, protocol)
    return made


@pytest.fixture
def readers(folders, no_official_hashes):
    """Gives the readers of a run as its notebook does, by name, over `archives`."""

    def read(protocol, names):
        given = {"root": folders[protocol], "train_per_class": 45, "test_per_class": 20}
        bind = datasets.READERS.bind
        return {name: bind(name, cache="", **given)() for name in names.split()}

    return read


@pytest.mark.parametrize("name", KIM)
def test_far_sets_of_a_paper_file_of_kim_have_as_many_images_as_table_2(name):
    """Where a count is given; DTD, Caltech and the smaller Places have what is on disk."""
    table = tables.published("kim2021", "table2").set_index("dataset")["test"]
    printed = {"lsun_fix": "LSUN-FIX", "svhn": "SVHN", "gaussian_noise": "Gaussian"}
    printed |= {"food101": "Food-32"}
    counts = datasets.counted(KIM[name]["counts"], of=KIM[name]["also"])
    assert counts == {key: table[name] for key, name in printed.items() if key in counts}
    assert len(counts) == {"cifar40": 3, "imagenet200": 1}[KIM[name]["protocol"]["name"]]


@pytest.mark.parametrize("name", KIM)
def test_the_network_of_a_paper_file_of_kim_is_made_and_drops_where_passes_are_asked_for(name):
    how = KIM[name]["network"] | {"classes": 40, "channels": 3}
    with torch.device("meta"):
        network = models.MODELS.bind(how.pop("name"), **how)()
        features = network.trunk(torch.zeros(2, 3, 64, 64))
    assert features.shape == (2, how["features"])
    assert sum(isinstance(m, torch.nn.Linear) for m in network.modules()) == 1  # no layer between
    dropping = [m for m in network.modules() if isinstance(m, torch.nn.Dropout) and m.p > 0]
    assert bool(dropping) == (KIM[name]["answer"]["name"] == "mcdropout")


@pytest.mark.parametrize("protocol", ["cifar40", "imagenet200"])
def test_classes_of_the_benchmarks_of_kim_are_what_the_readers_call_them(protocol, readers):
    of = [each for each in KIM.values() if each["protocol"]["name"] == protocol]
    ((data, also),) = {(each["reader"]["name"], each["also"]) for each in of}
    read, far = readers(protocol, data), readers(protocol, also)
    assert len({images.shape for images in read.values()}) == 1  # or they are not joined
    rows = (datasets.joined(read) if len(read) > 1 else read[data]).rows
    every = protocols.PROTOCOLS[protocol]()
    here = protocols.PROTOCOLS[protocol](available=set(rows["wnid"]))
    assert set(here["wnid"]) == set(every.query("group != 'far'")["wnid"])
    splits = rows.groupby("wnid")["split"].agg(set)[here["wnid"]]
    assert all(found >= {"test"} for found in splits)
    assert all(found == {"train", "test"} for found in splits[(here["role"] != "unknown").tolist()])
    found = [  # as the notebook chooses them
        sorted(set(images.rows.query("split == 'test'")["wnid"]) & set(every["wnid"]))
        for images in far.values()
    ]
    assert sorted(chain(*found)) == sorted(every.query("group == 'far'")["wnid"])
    sources = every.set_index("wnid")["source"]
    assert [sources[each].nunique() for each in found] == [1] * len(found)


@pytest.mark.parametrize("name", sorted(datasets.READERS.keys() - {"own_images"}))
def test_a_reader_needs_data_if_the_check_before_a_kernel_says_so(name, tmp_path):
    read = datasets.READERS.bind(
        name, root=tmp_path, cache="", train_per_class=45, test_per_class=20
    )
    if name not in needs():
        assert len(read().rows)
        return
    with pytest.raises(FileNotFoundError):
        read()


@pytest.mark.parametrize("name", KIM)
def test_the_check_before_a_kernel_finds_the_data_of_a_paper_file_of_kim(
    name, folders, tmp_path, monkeypatch
):
    plan = run.plan(workbook.root() / "params" / "31_kim_train" / f"{name}.yaml")
    monkeypatch.setenv("OSNB_DATA", str(tmp_path))
    assert re.match(r"the reader \w+ needs .* in ", run.lacking(plan))
    monkeypatch.setenv("OSNB_DATA", str(folders[KIM[name]["protocol"]["name"]]))
    assert run.lacking(plan) == ""


@pytest.mark.parametrize("protocol", ["cifar40", "imagenet200"])
def test_no_far_photograph_of_kim_is_enlarged(protocol, readers):
    settings = next(each for each in KIM.values() if each["protocol"]["name"] == protocol)
    sizes = {images.shape for images in readers(protocol, settings["reader"]["name"]).values()}
    far = readers(protocol, settings["also"])
    assert {name: images.shape for name, images in far.items()} == dict.fromkeys(far, *sizes)
