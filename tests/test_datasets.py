"""Readers on a few files each, and the batches made of them."""

import os
import pickle
import re
import struct

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from osnb.base import workbook
from osnb.datasets import READERS, BrokenImage
from osnb.datasets.photographs import decode
from osnb.datasets.readers import resized_window
from osnb.datasets.vision import torchvision

pytestmark = pytest.mark.usefixtures("no_official_hashes")
A, B = "n01440764", "n02084071"


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, size=(40, 30), seed=0):
    """A photograph of noise, so that a window in the wrong place is noticed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(size[1], size[0], 3, seed=seed)).save(path, "JPEG", quality=95)
    return path


# Fixtures: the files of each reader, in miniature.


def make_folder(root):
    for seed, name in enumerate([f"{B}/b.JPEG", f"{A}/a2.JPEG", f"{A}/a10.jpg", f"{A}/._a.JPEG"]):
        save(root / name, (40 + 5 * seed, 30), seed)


VAL = {"v_1.JPEG": B, "v_2.JPEG": A, "v_3.JPEG": B}


def make_ilsvrc(root, layout="by wnid"):
    base = root / "ILSVRC/Data/CLS-LOC" if layout == "kaggle" else root
    make_folder(base / "train")
    for seed, (name, wnid) in enumerate(VAL.items()):
        save(base / "val" / (f"{wnid}/{name}" if layout == "by wnid" else name), (50, 60), seed)
    if layout == "kaggle":
        lines = [f"v_{i},{VAL[f'v_{i}.JPEG']} 1 2 3 4 {A} 1 2 3 4 " for i in (3, 1, 2)]
        (root / "LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *lines]))
    if layout == "list":
        path = root / "val" / "imagenet_2012_validation_synset_labels.txt"
        path.write_text("\n".join(VAL.values()) + "\n")
    if layout == "devkit":
        data = root / "ILSVRC2012_devkit_t12/data"
        data.mkdir(parents=True)
        synsets = np.array([(1, B), (2, A)], [("ILSVRC2012_ID", "f8"), ("WNID", "O")])
        savemat(data / "meta.mat", {"synsets": synsets})
        (data / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n2\n1\n")


def make_tinyimagenet(root):
    for seed, name in enumerate([f"{B}/images/{B}_0.JPEG", f"{A}/images/{A}_0.JPEG"]):
        save(root / "train" / name, (64, 64), seed)
    for name in VAL:
        save(root / "val/images" / name, (64, 64))
    lines = [f"{name}\t{wnid}\t0\t0\t62\t62\n" for name, wnid in VAL.items()]
    (root / "val/val_annotations.txt").write_text("".join(lines))


def make_coarse(root):
    """Tiny ImageNet with one image of noise so coarse that no resize evens it out."""
    make_tinyimagenet(root)
    pixels = noise(8, 8, 3).repeat(8, axis=0).repeat(8, axis=1)
    Image.fromarray(pixels).save(root / "val/images" / next(iter(VAL)), "JPEG", quality=95)


def make_parquet(root, file, column, names, splits):
    jpegs = [save(root / "one.JPEG", (32, 32), seed).read_bytes() for seed in range(3)]
    table = pd.DataFrame({"split": splits, "label": [0, 1, 0], column: names, "jpeg": jpegs})
    table.to_parquet(root / file)


def make_mnist(root, name="MNIST"):
    raw = root / name / "raw"
    raw.mkdir(parents=True)
    for part, n in (("train", 3), ("t10k", 2)):
        images = struct.pack(">4i", 2051, n, 28, 28) + noise(n, 28, 28).tobytes()
        (raw / f"{part}-images-idx3-ubyte").write_bytes(images)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 2049, n) + bytes(range(n))
        )


def make_cifar(root, name, classes=("aeroplane", "car")):
    """Without the official hashes, which no fixture can have: the check is switched off."""
    made = getattr(torchvision.datasets, name)
    folder = root / made.base_folder
    folder.mkdir(parents=True)
    label = "labels" if name == "CIFAR10" else "fine_labels"
    for file, _ in made.train_list + made.test_list:
        content = {"data": noise(len(classes), 3072), label: [*range(len(classes))][::-1]}
        (folder / file).write_bytes(pickle.dumps(content))
    names = {made.meta["key"]: [*classes]}
    (folder / made.meta["filename"]).write_bytes(pickle.dumps(names))


def make_svhn(root, digits=(1, 10)):
    for split in ("train", "test"):
        content = {"X": noise(32, 32, 3, len(digits)), "y": np.array(digits)[:, None]}
        savemat(root / f"{split}_32x32.mat", content)


CUB = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


def make_cub(root):
    files = [f"{CUB[1]}/b_2.jpg", f"{CUB[0]}/a_1.jpg", f"{CUB[1]}/b_1.jpg"]
    for seed, name in enumerate(files):
        save(root / "images" / name, (520 + 10 * seed, 515), seed)
    texts = {
        "images": files,
        "classes": CUB,
        "image_class_labels": "212",
        "train_test_split": "101",
    }
    for name, values in texts.items():
        (root / f"{name}.txt").write_text("".join(f"{i} {v}\n" for i, v in enumerate(values, 1)))
    (root / "attributes").mkdir()
    table = root / "attributes" / "class_attribute_labels_continuous.txt"
    table.write_text("0.0 33.5 100\n12.25 0 50.0\n")


def make_cars(root):
    names = np.array(["Acura RL Sedan 2012", "Ram C/V Cargo Van Minivan 2012"], object)
    fields = [("relative_im_path", "O"), ("class", "u1"), ("test", "u1")]
    paths = [save(root / f"car_ims/{i}.jpg", (520, 515), int(i)).relative_to(root) for i in "123"]
    files = zip(map(str, paths), (2, 1, 2), (1, 0, 0), strict=True)
    savemat(
        root / "cars_annos.mat", {"annotations": np.array([*files], fields), "class_names": names}
    )


def make_aircraft(root):
    for seed, name in enumerate("123"):
        save(root / f"images/{name}.jpg", (520, 515), seed)
    lists = {
        "variant": ("2 Boeing 717\n", "1 707-320\n", "3 707-320\n"),
        "family": ("2 Boeing 717\n", "1 Boeing 707\n", "3 Boeing 707\n"),
        "manufacturer": ("2 Boeing\n", "1 Boeing\n", "3 Boeing\n"),
    }
    for kind, texts in lists.items():
        for part, text in zip(("train", "val", "test"), texts, strict=True):
            (root / f"images_{kind}_{part}.txt").write_text(text)


def make_classes(root, inner, *classes):
    for number, each in enumerate(classes):
        for name in ("b.jpg", "a.jpg"):
            save(root / inner / each / name, seed=number)


MAKE = {
    "caltech256": lambda root: make_classes(root, "256_ObjectCategories", "001.ak47", "022.b-101"),
    "food101": lambda root: make_classes(root, "food-101/images", "apple_pie", "pho"),
    "lsun_fix": lambda root: make_classes(root, "lsun", "bridge", "tower"),
    "tinyimagenet_fix": make_coarse,
    "aircraft": make_aircraft,
    "cars": make_cars,
    "cub": make_cub,
    "imagenet21k": make_folder,
    "cifar10": lambda root: make_cifar(root, "CIFAR10"),
    "cifar100": lambda root: make_cifar(root, "CIFAR100"),
    "cifar10_parquet": lambda root: make_parquet(
        root, "cifar10_jpeg.parquet", "name", ["cat", "dog", "cat"], ["train", "train", "test"]
    ),
    "fashion_mnist": lambda root: make_mnist(root, "FashionMNIST"),
    "folder": make_folder,
    "ilsvrc": make_ilsvrc,
    "mnist": make_mnist,
    "mnist_rgb": make_mnist,
    "svhn": make_svhn,
    "tinyimagenet": make_tinyimagenet,
    "tinyimagenet_parquet": lambda root: make_parquet(
        root, "tinyimagenet32_jpeg.parquet", "wnid", [A, B, A], ["train", "train", "val"]
    ),
}
SHAPES = {"ilsvrc": (3, 224, 224), "folder": (3, 224, 224), "tinyimagenet": (3, 64, 64)}
SHAPES |= dict.fromkeys(("aircraft", "cars", "cub"), (3, 448, 448))
SHAPES |= dict.fromkeys(("caltech256", "food101"), (3, 224, 224))
SHAPES |= {"imagenet21k": (3, 224, 224), "mnist": (1, 28, 28), "fashion_mnist": (1, 28, 28)}


@pytest.fixture(params=sorted(MAKE))
def made(request, tmp_path):
    """(name, root): the files of one reader."""
    MAKE[request.param](tmp_path)
    return request.param, tmp_path


# Readers.


def test_a_reader_gives_uint8_images_of_its_shape(made):
    images = READERS[made[0]](made[1])
    pixels = images.read(np.arange(len(images.rows)))
    assert images.shape == SHAPES.get(made[0], (3, 32, 32))
    assert pixels.shape == (len(images.rows), *images.shape)
    assert pixels.dtype == torch.uint8
    assert pixels.min() < 50  # noise fills the range
    assert pixels.max() > 200


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_missing_folder_says_what_was_looked_for_and_how_to_get_it(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="OSNB_DATA") as error:
        READERS[name](tmp_path / "absent")
    assert str(tmp_path / "absent") in str(error.value)


FAR = {"caltech256": "256_ObjectCategories", "food101": "food-101", "lsun_fix": "lsun"}


@pytest.mark.parametrize("name", FAR)
def test_folders_of_something_else_are_no_far_set_and_the_set_itself_may_be_the_root(
    name, tmp_path
):
    (tmp_path / "other" / "cifar").mkdir(parents=True)
    for place in ("holiday", "images/holiday"):
        save(tmp_path / "other" / place / "a.jpg")
    with pytest.raises(FileNotFoundError, match=f"there is no .*other/{FAR[name]}.*: needed"):
        READERS[name](tmp_path / "other")
    MAKE[name](tmp_path)
    long, short = (READERS[name](root) for root in (tmp_path, tmp_path / FAR[name]))
    assert long.rows["sample"].tolist() == short.rows["sample"].tolist()
    assert torch.equal(*(x.read(np.arange(len(x.rows))) for x in (long, short)))


@pytest.mark.parametrize(
    ("name", "splits"), [("svhn", ["split='train', ", "split='test', "]), ("cifar10", [""])]
)
def test_what_fetches_a_set_fetches_both_of_its_splits(name, splits, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        READERS[name](tmp_path)
    calls = re.findall(r"torchvision[.]datasets[.]\w+\([^)]*\)", str(error.value))
    wanted = [f"{name.upper()}({str(tmp_path)!r}, {split}download=True)" for split in splits]
    assert calls == [f"torchvision.datasets.{call}" for call in wanted]


@pytest.mark.parametrize("layout", ["by wnid", "kaggle", "list", "devkit"])
def test_ilsvrc_has_the_same_ids_order_and_pixels_in_every_layout(layout, tmp_path):
    make_ilsvrc(tmp_path / "one", layout)
    make_ilsvrc(tmp_path / "two")
    images, by_wnid = (READERS["ilsvrc"](tmp_path / name) for name in ("one", "two"))
    assert images.rows["sample"].tolist() == [
        f"train/{A}/a10.jpg",
        f"train/{A}/a2.JPEG",
        f"train/{B}/b.JPEG",
        f"val/{A}/v_2.JPEG",
        f"val/{B}/v_1.JPEG",
        f"val/{B}/v_3.JPEG",
    ]
    assert images.rows["wnid"].tolist() == [A, A, B, A, B, B]
    assert all((tmp_path / "one" / path).is_file() for path in images.rows["path"])
    assert torch.equal(images.read(np.arange(6)), by_wnid.read(np.arange(6)))


def test_a_flat_validation_set_without_classes_names_the_files_looked_for(tmp_path):
    make_ilsvrc(tmp_path, "flat")
    with pytest.raises(FileNotFoundError, match=r"LOC_val_solution\.csv.*ground_truth\.txt"):
        READERS["ilsvrc"](tmp_path)


@pytest.mark.parametrize("layout", ["kaggle", "list", "devkit"])
def test_a_validation_file_more_than_there_are_classes_is_refused(layout, tmp_path):
    make_ilsvrc(tmp_path, layout)
    (val,) = [path.parent for path in tmp_path.rglob("v_1.JPEG")]
    save(val / "v_4.JPEG")
    with pytest.raises(ValueError, match="4 files, but 3 classes"):
        READERS["ilsvrc"](tmp_path)


@pytest.mark.parametrize(
    ("layout", "old", "new", "reason"),
    [
        ("kaggle", "ImageId", "Image", "needs columns ImageId,PredictionString"),
        ("kaggle", f"v_2,{A} 1 2 3 4 {A} 1 2 3 4 ", "v_2,", "gives 'v_2' no class"),
        ("kaggle", f"v_2,{A} 1 2 3 4 {A} 1 2 3 4 ", '"v\n2",', r"gives 'v\\n2' no class"),
        ("kaggle", "v_2,", f"v_2,{B}\nv_2,", f"gives 'v_2' two classes, {B} and {A}"),
        ("list", A, "hello", "needs classes such as n01440764; got 'hello'"),
    ],
)
def test_classes_of_a_validation_set_that_are_none_are_refused(tmp_path, layout, old, new, reason):
    make_ilsvrc(tmp_path, layout)
    name = {"kaggle": "LOC_val_solution.csv", "list": "imagenet_2012_validation_synset_labels.txt"}
    (file,) = tmp_path.rglob(name[layout])
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ValueError, match=reason) as refused:
        READERS["ilsvrc"](tmp_path)
    assert str(file) in str(refused.value)


def test_a_ground_truth_without_its_list_of_classes_says_so(tmp_path):
    make_ilsvrc(tmp_path, "devkit")
    next(tmp_path.rglob("meta.mat")).unlink()
    with pytest.raises(FileNotFoundError, match=r"meta\.mat"):
        READERS["ilsvrc"](tmp_path)


@pytest.mark.parametrize("split", ["Train", "foo", ""])
def test_a_split_that_is_neither_training_nor_test_is_refused(tmp_path, split):
    file = tmp_path / "tinyimagenet32_jpeg.parquet"
    pd.DataFrame({"split": ["train", split], "wnid": A, "jpeg": b""}).to_parquet(file)
    with pytest.raises(ValueError, match=f"needs splits train or test, .*; got '{split}'"):
        READERS["tinyimagenet_parquet"](tmp_path)


def test_an_empty_class_and_a_folder_without_classes_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder named after a wnid"):
        READERS["folder"](tmp_path)
    (tmp_path / A).mkdir()
    with pytest.raises(FileNotFoundError, match=f"{A} holds no image file"):
        READERS["folder"](tmp_path)


def test_bad_options_of_a_reader_are_refused(tmp_path):
    make_folder(tmp_path)
    with pytest.raises(ValueError, match="crop 224 and resize 128"):
        READERS["folder"](tmp_path, resize=128)
    with pytest.raises(ValueError, match="train or test; got 'val'"):
        READERS["folder"](tmp_path, split="val")


def test_tinyimagenet_takes_the_classes_of_val_from_its_annotations(tmp_path):
    make_tinyimagenet(tmp_path)
    rows = READERS["tinyimagenet"](tmp_path).rows
    val = rows[rows["split"] == "test"]
    assert dict(zip(val["sample"], val["wnid"], strict=True)) == {
        f"val/{wnid}/{name}": wnid for name, wnid in VAL.items()
    }


def test_birds_cars_and_aircraft_take_class_and_split_from_their_lists(tmp_path):
    expected = {
        "cub": [
            ("train", CUB[1], "b_1.jpg"),
            ("train", CUB[1], "b_2.jpg"),
            ("test", CUB[0], "a_1.jpg"),
        ],
        "cars": [
            ("train", "Acura RL Sedan 2012", "2.jpg"),
            ("train", "Ram C-V Cargo Van Minivan 2012", "3.jpg"),
            ("test", "Ram C-V Cargo Van Minivan 2012", "1.jpg"),
        ],
        "aircraft": [
            ("train", "707-320", "1.jpg"),
            ("train", "Boeing 717", "2.jpg"),
            ("test", "707-320", "3.jpg"),
        ],
    }
    for name, rows in expected.items():
        MAKE[name](tmp_path / name)
        made = READERS[name](tmp_path / name).rows
        assert made["sample"].tolist() == ["/".join(row) for row in rows]
        assert made["split"].tolist() == [split for split, *_ in rows]
        assert made["wnid"].tolist() == [wnid for _, wnid, _ in rows]
        assert all((tmp_path / name / path).is_file() for path in made["path"])


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("cub", "train_test_split.txt"),
        ("cars", "cars_annos.mat"),
        ("aircraft", "images_variant_val.txt"),
    ],
)
def test_a_list_that_is_missing_is_named(name, file, tmp_path):
    MAKE[name](tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(FileNotFoundError, match=file):
        READERS[name](tmp_path)


BROKEN = {
    "cars": ("cars_annos.mat", "is no file of MATLAB"),
    "ilsvrc": ("ILSVRC2012_devkit_t12/data/meta.mat", "is no file of MATLAB"),
    "cub": ("classes.txt", "needs class '2' of an image"),
    "mnist": ("MNIST/raw/train-labels-idx1-ubyte", "has no whole copy of MNIST"),
    "cifar10": ("cifar-10-batches-py/data_batch_2", "has no whole copy of CIFAR10"),
}


@pytest.mark.parametrize("content", [b"", b"\0\1\2" * 99, b"[" * 9999], ids=["no", "odd", "deep"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_list_or_a_table_that_is_none_is_refused_with_its_place(name, content, tmp_path):
    file, reason = BROKEN[name]
    make_ilsvrc(tmp_path, "devkit") if name == "ilsvrc" else MAKE[name](tmp_path)
    (tmp_path / file).write_bytes(b"1 a" if name == "cub" else content)
    with pytest.raises(ValueError, match=reason) as refused:
        READERS[name](tmp_path)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_ground_truth_of_other_words_is_refused(tmp_path):
    make_ilsvrc(tmp_path, "devkit")
    file = tmp_path / "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"
    for text, word in (("1\n2\nx\n", "'x'"), ("1\n2\n3\n", "'3'")):
        file.write_text(text)
        with pytest.raises(ValueError, match=f"{file} needs numbers of classes in .*got {word}"):
            READERS["ilsvrc"](tmp_path)


@pytest.mark.parametrize("name", ["folder", "tinyimagenet", "cub", "lsun_fix"])
def test_a_pipe_in_the_place_of_an_image_is_broken_and_not_waited_for(name, tmp_path):
    MAKE[name](tmp_path)
    names = ["*.jpg", "*.JPEG"]
    files = sorted(x for kind in names for x in tmp_path.rglob(kind) if x.name[0] != ".")
    for file in files:
        file.unlink()
        os.mkfifo(file)
    with pytest.raises(BrokenImage, match="does not decode"):
        READERS[name](tmp_path).read(np.array([0]))


def test_a_pipe_in_the_place_of_a_list_is_no_list(tmp_path):
    make_tinyimagenet(tmp_path)
    (tmp_path / "val/val_annotations.txt").unlink()
    os.mkfifo(tmp_path / "val/val_annotations.txt")
    with pytest.raises(FileNotFoundError, match="val_annotations"):
        READERS["tinyimagenet"](tmp_path)


def test_birds_whose_lists_disagree_are_refused(tmp_path):
    make_cub(tmp_path)
    (tmp_path / "train_test_split.txt").write_text("1 1\n2 0\n")
    with pytest.raises(ValueError, match=r"3 in images\.txt, 3 in .* and 2 in train_test_split"):
        READERS["cub"](tmp_path)


def test_classes_of_imagenet_21k_lie_in_the_folder_of_its_archive(tmp_path):
    make_folder(tmp_path / "imagenet21k_val")
    assert set(READERS["imagenet21k"](tmp_path).rows["wnid"]) == {A, B}


def test_an_image_of_another_size_than_its_set_is_named(tmp_path):
    make_tinyimagenet(tmp_path)
    save(tmp_path / "val/images/v_2.JPEG", (63, 64))
    images = READERS["tinyimagenet"](tmp_path)
    with pytest.raises(BrokenImage, match=r"v_2\.JPEG must be 64 x 64 pixels; got \(63, 64\)"):
        images.read(np.arange(5))


def test_a_parquet_file_cut_short_or_of_other_columns_is_named(tmp_path):
    MAKE["cifar10_parquet"](tmp_path)
    path = tmp_path / "cifar10_jpeg.parquet"
    path.rename(tmp_path / "tinyimagenet32_jpeg.parquet")
    with pytest.raises(ValueError, match=r"tinyimagenet32_jpeg\.parquet must be .* wnid"):
        READERS["tinyimagenet_parquet"](tmp_path)
    path.write_bytes((tmp_path / "tinyimagenet32_jpeg.parquet").read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"cifar10_jpeg\.parquet must be .* cannot be read"):
        READERS["cifar10_parquet"](tmp_path)


def test_a_parquet_file_whose_pages_are_broken_is_refused_in_one_line(tmp_path):
    """Arrow says it in two."""
    MAKE["cifar10_parquet"](tmp_path)
    path = tmp_path / "cifar10_jpeg.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\x0f" * 40 + content[44:])
    with pytest.raises(ValueError, match=r"cifar10_jpeg\.parquet must be .* read: (.*)") as refused:
        READERS["cifar10_parquet"](tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("layout", ["kaggle", "list"])
def test_classes_of_a_validation_set_that_are_no_text_are_refused_by_their_file(tmp_path, layout):
    make_ilsvrc(tmp_path, layout)
    name = {"kaggle": "LOC_val_solution.csv", "list": "imagenet_2012_validation_synset_labels.txt"}
    (file,) = tmp_path.rglob(name[layout])
    file.write_bytes(file.read_bytes() + b"\x86")
    with pytest.raises(ValueError, match="is no list in UTF-8") as refused:
        READERS["ilsvrc"](tmp_path)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "file", "column", "side", "mode", "wnid"),
    [
        ("cifar10", "cifar10.parquet", "name", 32, "RGB", "7"),
        ("cifar100", "cifar100.parquet", "name", 32, "RGB", "7"),
        ("mnist", "mnist_png.parquet", "name", 28, "L", "7 - seven"),
        ("tinyimagenet", "tinyimagenet64_jpeg.parquet", "wnid", 64, "RGB", "7"),
        ("textures", "dtd10_128px_q85.parquet", "name", 128, "RGB", "7"),
    ],
)
def test_a_data_set_may_come_packed_in_one_file(name, file, column, side, mode, wnid, tmp_path):
    photo = Image.fromarray(noise(side, side, 3)).convert(mode)
    photo.save(tmp_path / "one.png")
    table = pd.DataFrame({"split": ["train", "val"], column: ["7", "3"]})
    table["png"] = [(tmp_path / "one.png").read_bytes()] * 2
    table.to_parquet(tmp_path / file)
    images = READERS[name](tmp_path)
    assert images.rows["wnid"][0] == wnid
    assert images.rows["split"].tolist() == ["train", "test"]
    wanted = np.atleast_3d(np.asarray(photo)).transpose(2, 0, 1)
    if name == "textures":  # squeezed, antialiased
        wanted = np.asarray(photo.resize((32, 32), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert abs(images.read(np.array([1]))[0].numpy() - wanted.astype(int)).max() <= (
        name == "textures"
    )


def test_scenes_that_are_classes_of_cifar100_are_not_tested(tmp_path):
    classes = ["glacier", "forest", "street", "sea"]
    file = "intel_scenes_64px_test.parquet"
    save(tmp_path / "one.JPEG", (64, 64))
    table = pd.DataFrame({"split": "test", "name": classes})
    table["jpeg"] = [(tmp_path / "one.JPEG").read_bytes()] * 4
    table.to_parquet(tmp_path / file)
    tested = READERS["scenes"](tmp_path).rows.query("split == 'test'")
    assert tested["wnid"].tolist() == ["scene-glacier", "scene-street"]


def test_a_reader_may_have_a_folder_of_its_own(monkeypatch):
    monkeypatch.setenv("OSNB_DATA", "/common")
    text = "cifar10=/one 'textures=/with blank'"
    found = [str(workbook.data(text, name)) for name in ("cifar10", "textures", "svhn")]
    assert found == ["/one", "/with blank", "/common"]
    assert str(workbook.data("/all", "cifar10")) == "/all"
    assert str(workbook.data("/sets/run=3", "cifar10")) == "/sets/run=3"
    monkeypatch.setenv("HOME", "/home/ada")
    assert str(workbook.data("~/sets")) == "/home/ada/sets"
    assert str(workbook.data("svhn=~/a", "svhn")) == "/home/ada/a"
    monkeypatch.setenv("OSNB_DATA", "~/all")
    assert str(workbook.data("")) == "/home/ada/all"


def test_mnist_in_colour_is_what_pillow_makes_of_each_image(tmp_path):
    make_mnist(tmp_path)
    images, small = READERS["mnist_rgb"](tmp_path), READERS["mnist"](tmp_path)
    assert images.rows.equals(small.rows)
    for ours, grey in zip(
        images.read(np.arange(len(small.rows))), small.read(np.arange(len(small.rows))), strict=True
    ):
        wanted = Image.fromarray(grey[0].numpy()).resize((32, 32), Image.Resampling.BILINEAR)
        wanted = np.asarray(wanted.convert("RGB")).transpose(2, 0, 1).astype(int)
        assert abs(ours.numpy() - wanted).max() <= 1


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("mnist", "0 - zero"),
        ("fashion_mnist", "T-shirt/top"),
        ("cifar10", "car"),
        ("cifar100", "car"),
        ("svhn", "1"),
    ],
)
def test_torchvision_gives_the_same_pixels_and_class_names(name, first, tmp_path):
    MAKE[name](tmp_path)
    images = READERS[name](tmp_path)
    made = getattr(torchvision.datasets, READERS[name].keywords["name"])
    half = made(tmp_path, split="test") if name == "svhn" else made(tmp_path, train=False)
    start = (images.rows["split"] == "train").sum()
    for i in range(len(half)):
        pixels = np.atleast_3d(np.asarray(half[i][0])).transpose(2, 0, 1)
        assert (images.read(np.array([start + i]))[0].numpy() == pixels).all()
    assert images.rows["wnid"][0] == first


# Decoding and cropping.


@pytest.mark.parametrize("place", [(0.0, 0.0), (0.999, 0.999), (0.5, 0.2), (0.1, 0.9)])
def test_a_place_agrees_with_torchvision_at_the_pixel_it_means(place, tmp_path):
    photo = Image.open(save(tmp_path / A / "a.png", (60, 40)))
    whole = torchvision.transforms.functional.resize(photo, 20)  # 30 wide, 20 high
    top, left = int(place[0] * 5), int(place[1] * 15)  # a window of 16 has 5 and 15 places
    slow = torchvision.transforms.functional.crop(whole, top, left, 16, 16)
    images = READERS["folder"](tmp_path, resize=20, crop=16)
    made = images.read(np.array([0]), np.array([place]))[0]
    assert (made.numpy().transpose(1, 2, 0) == np.asarray(slow)).all()


@pytest.mark.parametrize("cache", ["", "cache"])
@pytest.mark.parametrize(
    ("size", "draws", "box"),  # top, left, height, width, in the file's own pixels
    [
        ((60, 40), (0.5, 0.5, 0.5, 0.9), (2, 22, 36, 36)),
        ((60, 40), (0.5, 0.9, 0.0, 0.0), (0, 0, 32, 40)),
        ((60, 40), (0.0, 0.0, 0.99, 0.99), (24, 48, 16, 12)),
        ((60, 40), (0.99, 0.5, 0.0, 0.0), (0, 3, 40, 53)),  # 49 x 49 does not fit
        ((40, 60), (0.99, 0.5, 0.0, 0.0), (3, 0, 53, 40)),
    ],
)
def test_a_resized_window_agrees_with_torchvision_s_of_that_box(size, draws, box, cache, tmp_path):
    photo = Image.open(save(tmp_path / "photos" / A / "a.png", size))
    slow = torchvision.transforms.functional.resized_crop(photo, *box, [16, 16])
    folder = str(tmp_path / cache) if cache else ""
    images = READERS["folder"](tmp_path / "photos", resize=20, crop=16, cache=folder)
    made = images.read(np.array([0]), np.array([[draws]]))[0]
    apart = made.numpy().transpose(1, 2, 0).astype(int) - np.asarray(slow)
    assert np.abs(apart).max() <= 1  # weights of 16 bits, and of 22


def test_the_first_window_that_fits_is_taken():
    photo = noise(3, 20, 30)
    high, fits, other = np.array([[0.99, 0.5, 0, 0], [0.5, 0.5, 0.5, 0.9], [0.2, 0.5, 0, 0]])
    alone = resized_window(photo, 16, fits[None])
    assert (resized_window(photo, 16, np.stack([high, fits, other])) == alone).all()
    assert (resized_window(photo, 16, other[None]) != alone).any()


def test_windows_are_as_wide_as_torchvision_draws_them():
    ramp = np.broadcast_to(np.arange(256, dtype=np.uint8), (3, 256, 256))
    rng, of = np.random.default_rng(0), torchvision.transforms.RandomResizedCrop.get_params
    made = [np.ptp(resized_window(ramp, 64, rng.random((10, 4))).astype(int)) for _ in range(600)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        boxes = [of(torch.empty(3, 256, 256), (0.08, 1), (3 / 4, 4 / 3)) for _ in range(600)]
    quantiles = [np.quantile(x, [0.1, 0.5, 0.9]) for x in (made, [box[3] for box in boxes])]
    assert quantiles[0] == pytest.approx(quantiles[1], abs=15)


def encoded(photo, kind, path, **options):
    photo.save(path, kind, **options)
    return decode(path.read_bytes(), str(path))


def test_sixteen_bits_keep_their_upper_eight(tmp_path):
    deep = np.arange(0, 65536, 256, np.uint16).reshape(16, 16) + np.uint16(200)
    made = np.asarray(encoded(Image.fromarray(deep), "PNG", tmp_path / "x"))
    assert (made[:, :, 0] == np.arange(256).reshape(16, 16)).all()


@pytest.mark.parametrize("level", [-1, 65_536, 70_000])
def test_more_than_sixteen_bits_are_refused(level, tmp_path):
    deep = np.array([[0, 65_535]], np.int32)
    made = np.asarray(encoded(Image.fromarray(deep), "TIFF", tmp_path / "x"))
    assert made[0, :, 0].tolist() == [0, 255]
    with pytest.raises(BrokenImage, match=f"its levels go from .*{level}.* not from 0 to 65535"):
        encoded(Image.fromarray(deep * 0 + level), "TIFF", tmp_path / "x")


@pytest.mark.parametrize("bits", [np.uint16, np.int32])
@pytest.mark.parametrize("level", [0, 200, 256, 60_000])
def test_a_dark_image_is_read_as_a_bright_one_is(level, bits, tmp_path):
    flat = Image.fromarray(np.full((2, 2), level, bits))
    assert (np.asarray(encoded(flat, "TIFF", tmp_path / "x")) == level >> 8).all()


@pytest.mark.parametrize("mode", ["P", "RGBA", "LA"])
def test_alpha_is_dropped_without_a_warning(mode, tmp_path):
    photo = Image.fromarray(noise(8, 8)).convert(mode)
    options = {"transparency": bytes(range(256))} if mode == "P" else {}
    made = encoded(photo, "PNG", tmp_path / "x", **options)
    assert made.mode == "RGB"
    assert (np.asarray(made) == noise(8, 8)[:, :, None]).all()


@pytest.mark.parametrize("content", ["cut short", "text", "empty"])
def test_a_file_that_does_not_decode_is_named_with_its_path(content, tmp_path):
    path = save(tmp_path / A / "a.JPEG")
    whole = path.read_bytes()
    path.write_bytes(
        {"cut short": whole[:-400], "text": b"<html>404</html>", "empty": b""}[content]
    )
    with pytest.raises(BrokenImage, match=f"{path} does not decode .*broken=skip"):
        READERS["folder"](tmp_path).read(np.array([0]))


def given_twice(root):
    make_tinyimagenet(root)
    notes = root / "val/val_annotations.txt"
    notes.write_text(notes.read_text() + f"v_1.JPEG\t{A}\t0\t0\t62\t62\n")


def one_word(root):
    make_tinyimagenet(root)
    (root / "val/val_annotations.txt").write_text("v_1.JPEG\n")


def two_variants(root):
    make_aircraft(root)
    (root / "images_variant_test.txt").write_text("3 707-320\n1 Boeing 717\n")


def two_numbers(root):
    make_cub(root)
    images = root / "images.txt"
    images.write_text(images.read_text().replace("b_1.jpg", "b_2.jpg"))
    (root / "image_class_labels.txt").write_text("1 2\n2 1\n3 1\n")


TWICE = [
    ("tinyimagenet", given_twice, r"val_annotations.txt gives 'v_1.JPEG' twice: 'n\d+.*' and 'n"),
    ("tinyimagenet", one_word, "val_annotations.txt needs two words in each line; got 'v_1.JPEG'"),
    ("aircraft", two_variants, "'images/1.jpg' is train/707-320/1.jpg, test/Boeing 717/1.jpg"),
    ("cub", two_numbers, "'images/002.Laysan_Albatross/b_2.jpg' is train/001.*, train/002"),
]


def bad_folder(root):
    save(root / "lsun" / os.fsdecode(b"caf\xe9") / "a.jpg")
    save(root / "lsun" / "tea" / "a.jpg")


def bad_file(root):
    save(root / "lsun" / "tea" / os.fsdecode(b"caf\xe9.jpg"))


def bad_list(root):
    make_aircraft(root)
    (root / "images_variant_test.txt").write_bytes(b"3 caf\xe9\n")


SURROGATES = [
    ("lsun_fix", bad_folder, "a class of .* needs names that UTF-8 can write; got 'caf.udce9'"),
    ("lsun_fix", bad_file, "an image of .* needs names that UTF-8 can write; got 'caf.udce9.jpg'"),
    ("aircraft", bad_list, "images_variant_test.txt is no list in UTF-8: .*0xe9"),
]


@pytest.mark.parametrize(("name", "make", "reason"), TWICE + SURROGATES)
def test_an_image_under_two_classes_and_a_name_with_a_lone_surrogate_are_refused(
    name, make, reason, tmp_path
):
    make(tmp_path)
    with pytest.raises(ValueError, match=reason):
        READERS[name](tmp_path)


@pytest.mark.parametrize("name", ["aircraft", "cars", "cub"])
def test_birds_cars_and_aircraft_are_kept_in_a_cache_where_one_is_named(name, tmp_path):
    MAKE[name](tmp_path / "data")
    READERS[name](tmp_path / "data", cache=str(tmp_path / "cache"))
    assert len([*(tmp_path / "cache").iterdir()]) == 1
