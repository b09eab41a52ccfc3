"""Every params file is one experiment that its notebook understands, and says what it costs."""

import os
import pickle
import re
from itertools import chain

import numpy as np
import pytest
import torch
from scipy.io import savemat

from osnb import datasets, hierarchy, losses, methods, models, protocols, repro, run, tables, train
from osnb.augment import AUGMENT
from osnb.protocols.kim import far_classes
from osnb.run.choices import NEEDS
from osnb.scores.fitted import WEIGHTS
from osnb.vision import torchvision

NOTEBOOKS = [
    *("00_tour", "01_curves", "10_palechor_protocols", "11_palechor_losses"),
    *("12_palechor_train", "13_palechor_results", "14_palechor_capstone"),
    *("20_vaze_splits", "21_vaze_train", "22_vaze_correlation", "23_vaze_max_logit"),
    *("24_vaze_semantic_shift", "25_vaze_feature_norms", "26_vaze_ood"),
    "27_vaze_capstone",
    *("30_kim_benchmark", "31_kim_train", "32_kim_tasks", "33_kim_unified", "34_kim_capstone"),
    "40_cross",
]
SIZES = ("mini", "tiny", "paper")
FILES = sorted((repro.root() / "params").glob("*/*"))
SOURCES = sorted((repro.root() / "notebooks").glob("*.ipynb"))


def test_every_notebook_has_a_folder_of_params_and_every_folder_a_notebook():
    assert sorted({file.parent.name for file in FILES}) == NOTEBOOKS
    assert [source.stem for source in SOURCES] == NOTEBOOKS


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_params_file_is_what_its_notebook_declares(file):
    assert file.suffix == ".yaml"
    plan = run.plan(file)  # refuses unknown keys, other types, equal keys and another name
    assert plan.run == file.stem
    assert plan.parameters["size"] in SIZES
    assert file.stem.split("_")[0] == plan.parameters["size"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_params_file_opens_with_its_device_and_its_time(file):
    lines = file.read_text().splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    comment = " ".join(lines[:end])
    assert re.search(r"\b(CPU|GPU)s?\b", comment), f"no device in {comment!r}"
    time = r"\b(second|minute|hour|day|week)s?\b|not measured"
    assert re.search(time, comment), f"no time in {comment!r}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_defaults_of_a_notebook_are_a_params_file_of_the_miniature(source):
    defaults = repro.declared(source)
    file = repro.root() / "params" / source.stem / f"{defaults['run']}.yaml"
    assert run.plan(file).parameters == defaults
    assert defaults["size"] == "mini"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_no_two_params_files_of_a_notebook_are_one_experiment(source):
    seen = {}
    for file in [file for file in FILES if file.parent.name == source.stem]:
        parameters = run.plan(file).parameters
        content = repr(sorted((parameters | {"run": ""}).items()))
        assert content not in seen, f"{file} repeats {seen[content]}"
        seen[content] = file


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent.name.endswith("_train")], ids=lambda x: x.stem
)
def test_a_training_run_says_its_size_because_results_are_collected_by_it(file):
    assert "size" in repro.params(file)


# Paper 3 at its own size: no file has been run, so that every part is looked up, and the classes
# are held against what the readers make of folders named as the archives name them.

KIM = {file.stem: run.plan(file).parameters for file in FILES if file.match("31_kim_train/paper_*")}
CATALOGUES = {
    "protocol": protocols.PROTOCOLS,
    "model": models.MODELS,
    "head": models.HEADS,
    "loss": losses.LOSSES,
    "method": methods.METHODS,
    "augment": AUGMENT,
    "schedule": train.SCHEDULES,
    "precision": train.PRECISIONS,
    "recalibrated": WEIGHTS,
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
    cifar = torchvision.datasets.CIFAR100
    folder = root / cifar.base_folder
    folder.mkdir(parents=True)
    content = {"data": np.zeros((100, 3072), np.uint8), "fine_labels": list(range(100))}
    for file, _ in cifar.train_list + cifar.test_list:
        (folder / file).write_bytes(pickle.dumps(content))
    names = {cifar.meta["key"]: CIFAR100.split()}
    (folder / cifar.meta["filename"]).write_bytes(pickle.dumps(names))
    touch(root, *(f"train/{wnid}/images" for wnid in hierarchy.TINY_IMAGENET))
    lines = [f"{i}.JPEG\t{wnid}\t0\t0\t62\t62\n" for i, wnid in enumerate(hierarchy.TINY_IMAGENET)]
    (root / "val").mkdir()
    (root / "val/val_annotations.txt").write_text("".join(lines))
    for split in ("train", "test"):
        digits = {"X": np.zeros((32, 32, 3, 10), np.uint8), "y": np.arange(1, 11)[:, None]}
        savemat(root / f"{split}_32x32.mat", digits)
    touch(root / "lsun", *SCENES.split())
    textures = protocols.PROTOCOLS["cifar40"]().query("source == 'DTD'")["wnid"]
    touch(root / "dtd/images", *textures)


@pytest.fixture
def readers(tmp_path, monkeypatch):
    """Gives the readers of a run as its notebook does, by name, over `archives`."""
    there = lambda path, md5=None: os.path.isfile(path)  # noqa: E731
    monkeypatch.setattr(torchvision.datasets.cifar, "check_integrity", there)
    monkeypatch.setattr(torchvision.datasets.svhn, "check_integrity", there)

    def read(protocol, names):
        root = tmp_path / protocol
        if not root.exists():
            archives(root, protocol)
        drawn = {"train_per_class": 45, "test_per_class": 20}
        bind = datasets.READERS.bind
        return {name: bind(name, root=root, cache="", **drawn)() for name in names.split()}

    return read


@pytest.mark.parametrize("name", KIM)
def test_every_name_in_a_paper_file_of_kim_is_in_its_catalogue(name):
    parameters = KIM[name]
    for key, catalogue in CATALOGUES.items():
        assert parameters[key] in catalogue, key
    far = parameters["also"].split()
    assert {*parameters["dataset"].split(), *far} <= set(datasets.READERS)
    of = {"cifar40": "sgd", "imagenet200": "sgd_plain"}  # Nesterov's momentum on CIFAR only
    assert parameters["optimizer"] == of[parameters["protocol"]]
    assert (parameters["fitted"], parameters["members"]) in {(True, 1), (False, 1), (False, 5)}


@pytest.mark.parametrize("name", KIM)
def test_far_sets_of_a_paper_file_of_kim_have_as_many_images_as_table_2(name):
    """Where a count is given; DTD, Caltech and the smaller Places have what is on disk."""
    table = tables.published("kim2021", "table2").set_index("dataset")["test"]
    printed = {"lsun_fix": "LSUN-FIX", "svhn": "SVHN", "gaussian_noise": "Gaussian"}
    printed |= {"food101": "Food-32"}
    counts = datasets.counted(KIM[name]["counts"], of=KIM[name]["also"])
    assert counts == {key: table[name] for key, name in printed.items() if key in counts}
    assert len(counts) == {"cifar40": 3, "imagenet200": 1}[KIM[name]["protocol"]]


TRAINED = {file.stem: run.plan(file).parameters for file in FILES if file.match("31_kim_train/*")}


@pytest.mark.parametrize("name", TRAINED)
def test_no_file_of_kim_fits_rules_beside_several_networks_or_passes(name):
    parameters = TRAINED[name]
    assert not parameters["fitted"] or (parameters["members"], parameters["samples"]) == (1, 0)


def test_the_paper_files_of_kim_are_seven_methods_on_two_benchmarks_and_another_network_each():
    trained = ("baseline", "crl", "edl", "mcdropout", "ensemble", "augmix", "oe")
    wanted = [f"paper_{of}_{method}" for of in ("cifar", "imagenet") for method in trained]
    more = ["paper_cifar_baseline_resnet18", "paper_imagenet_baseline_resnet50"]
    assert sorted(KIM) == sorted([*wanted, *more])
    recipes = [(KIM[name]["protocol"], KIM[name]["recipe"].lower()) for name in wanted]
    assert recipes == [(of, name) for of in ("cifar40", "imagenet200") for name in trained]
    assert {KIM[name]["recipe"] for name in more} == {"Baseline ResNet-18", "Baseline ResNet-50"}


@pytest.mark.parametrize("name", KIM)
def test_the_network_of_a_paper_file_of_kim_is_made_and_drops_where_passes_are_asked_for(name):
    settings = KIM[name] | {"classes": 40, "channels": 3}
    with torch.device("meta"):
        network = models.MODELS.bind(settings["model"], **settings)()
        features = network.trunk(torch.zeros(2, 3, 64, 64))
    assert features.shape == (2, settings["features"])
    assert sum(isinstance(m, torch.nn.Linear) for m in network.modules()) == 1  # no layer between
    dropping = [m for m in network.modules() if isinstance(m, torch.nn.Dropout) and m.p > 0]
    assert bool(dropping) == (settings["samples"] > 0)


@pytest.mark.parametrize("protocol", ["cifar40", "imagenet200"])
def test_classes_of_the_benchmarks_of_kim_are_what_the_readers_call_them(protocol, readers):
    of = [each for each in KIM.values() if each["protocol"] == protocol]
    ((data, also),) = {(each["dataset"], each["also"]) for each in of}
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


@pytest.mark.parametrize("name", datasets.READERS)
def test_a_reader_needs_data_if_the_check_before_a_kernel_says_so(name, tmp_path):
    read = datasets.READERS.bind(
        name, root=tmp_path, cache="", train_per_class=45, test_per_class=20
    )
    if name not in NEEDS:
        assert len(read().rows)
        return
    with pytest.raises(FileNotFoundError):
        read()


@pytest.mark.parametrize("name", KIM)
def test_the_check_before_a_kernel_finds_the_data_of_a_paper_file_of_kim(
    name, tmp_path, monkeypatch
):
    plan = run.plan(repro.root() / "params" / "31_kim_train" / f"{name}.yaml")
    monkeypatch.setenv("OSNB_DATA", str(tmp_path))
    assert re.match(r"the reader \w+ needs .* in ", run.lacking(plan))
    archives(tmp_path, KIM[name]["protocol"])
    assert run.lacking(plan) == ""


@pytest.mark.parametrize("protocol", ["cifar40", "imagenet200"])
def test_no_far_photograph_of_kim_is_enlarged(protocol, readers):
    parameters = next(each for each in KIM.values() if each["protocol"] == protocol)
    sizes = {images.shape for images in readers(protocol, parameters["dataset"]).values()}
    far = readers(protocol, parameters["also"])
    assert {name: images.shape for name, images in far.items()} == dict.fromkeys(far, *sizes)
