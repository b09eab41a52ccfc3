"""Images, roles and losses of one's own: read, divided, refused, and examined before a run."""

import ast
import io
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from refusals import refused
from safetensors.torch import save_file
from test_cli import osnb

from osnb import datasets, losses, models, protocols
from osnb.base import user, workbook
from osnb.book.run import plan
from osnb.datasets import photographs
from osnb.experiment import Experiment, Machine, examined, predicted
from osnb.experiment.parts import sized
from osnb.protocols import hierarchy

ROLES = "class,role\na b,known\nc,known\nn,negative\nu,unknown\n"
MY = "roles: roles.csv\nimages: images\nresize: 10\ncrop: 8\nepochs: 2\nfeatures: 8\nwidth: 4\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four classes of twelve images that all differ, roles and a benchmark."""
    rng = np.random.default_rng(0)
    for name in ("a b", "c", "n", "u"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (12, 10, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{i}.png")
    (tmp_path / "roles.csv").write_text(ROLES)
    (tmp_path / "my.yaml").write_text(MY)
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    return tmp_path


def experiment(overrides="", method="softmax"):
    return Experiment.named("my.yaml", method=method, size="own", overrides=overrides)


def read(folder, **more):
    given = {"images": "images", "roles": "roles.csv", "resize": 10, "crop": 8}
    return datasets.READERS["own_images"](folder, **given | more)


def test_classes_have_the_roles_of_the_file_and_unknown_images_are_only_tested(folder):
    parts = experiment().parts(Machine())
    assert parts.known == 2
    counts = Counter(zip(parts.rows["role"], parts.rows["split"], strict=True))
    assert counts["unknown", "test"] == 12
    assert sum(n for (role, _), n in counts.items() if role == "unknown") == 12
    assert {split for role, split in counts if role == "known"} == {"train", "val", "test"}
    names = parts.rows.groupby("wnid")["label"].first()
    assert names.to_dict() == {"a b": 0, "c": 1, "n": -1, "u": -2}


def test_shares_are_those_asked_for_and_no_draw_depends_on_the_other_images(folder):
    rows = read(folder).rows
    of = rows[rows["wnid"] == "c"].set_index("path")["split"]
    digests = sorted(of.index, key=lambda path: sha256(path.encode()).digest())  # not by name
    assert [*of[digests]] == ["train"] * 7 + ["val"] * 3 + ["test"] * 2
    for path in (folder / "images" / "a b").iterdir():
        path.unlink()
        break
    again = read(folder).rows.set_index("path")["split"]
    assert (again[of.index] == of).all()


def test_no_unit_is_on_two_sides(folder):
    rows = read(folder).rows
    numbers = rows["path"].str.extract(r"(\d+)\.png")[0].astype(int)
    listed = rows.rename(columns={"wnid": "class"})[["path", "class"]]
    listed["unit"] = "patient " + (numbers // 3).astype(str)  # of all classes
    tested = listed[(rows["wnid"] != "u") | (numbers < 6)]  # two of four in the unknown one too
    for given, roles in ((listed, ""), (tested, "roles.csv")):
        given.to_csv(folder / "images" / "list.csv", index=False)
        found = read(folder, images="images/list.csv", roles=roles).rows
        assert (found.groupby("unit")["split"].nunique() == 1).all()
        assert found["split"].nunique() == 3
    listed["split"] = np.where(listed.index % 2, "train", "test")
    listed.to_csv(folder / "images" / "list.csv", index=False)
    with pytest.raises(ValueError, match="unit 'patient 0' is on 2 sides"):
        read(folder, images="images/list.csv", roles="")


def test_folders_of_splits_are_taken_as_they_are_and_val_comes_from_train(folder):
    (folder / "images").rename(folder / "old")
    for split, old in (("train", "a b"), ("train", "c"), ("test", "n"), ("test", "u")):
        (folder / "images" / split).mkdir(parents=True, exist_ok=True)
        (folder / "old" / old).rename(folder / "images" / split / old)
    counts = read(folder, roles="").rows.groupby("wnid")["split"].value_counts().to_dict()
    assert counts["n", "test"] == counts["u", "test"] == 12
    assert (counts["c", "train"], counts["c", "val"]) == (10, 2)
    (folder / "images" / "test").rename(folder / "images" / "Test")
    with pytest.raises(ValueError, match=r"called train, val, test; got Test, train"):
        read(folder, roles="")


def test_a_division_without_test_images_is_refused_before_anything_is_trained(folder):
    rows = read(folder, roles="").rows
    rows.rename(columns={"wnid": "class"}).assign(split="train").to_csv(
        folder / "images" / "list.csv", index=False
    )
    (folder / "my.yaml").write_text(MY.replace("images: images", "images: images/list.csv"))
    reason = r"list\.csv: no image is for testing: give some rows the split"
    with pytest.raises(ValueError, match=reason):
        experiment().parts(Machine())
    with pytest.raises(ValueError, match=reason):
        [*examined.benchmark(experiment(), Machine())]
    (folder / "images").rename(folder / "old")
    for split in ("train", "val"):
        shutil.copytree(folder / "old", folder / "images" / split)
    (folder / "my.yaml").write_text(MY)
    with pytest.raises(ValueError, match="images: no image is for testing: add test/<class>"):
        experiment().parts(Machine())


def test_pixels_are_those_of_pillow_turned_and_without_alpha(folder):
    photo = Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3))
    exif = photo.getexif()
    exif[0x0112] = 6  # the camera was held upright
    place = folder / "images" / "c"
    for path in place.iterdir():
        path.unlink()
    photo.save(place / "turned.png", exif=exif)
    photo.convert("RGBA").save(place / "alpha.png")
    photo.save(place / "turned.webp", exif=exif, lossless=True)
    photo.save(place / "turned.tiff", exif=exif)
    text, data = PngInfo(), exif.tobytes().hex()
    text.add_text("Raw profile type exif", f"\nexif\n{len(data) // 2:8}\n{data}\n", zip=True)
    photo.save(place / "profile.png", pnginfo=text)
    said = PngInfo()
    said.add_itxt("XML:com.adobe.xmp", '<x tiff:Orientation="6"/>', zip=True)
    photo.save(place / "said.png", pnginfo=said)
    grey = Image.new("L", (12, 10), 9)
    grey.paste(250, (0, 0, 12, 3))
    grey.save(place / "said.jpg", xmp=b'<x tiff:Orientation="6"/>', quality=100)
    exif[0x0112] = 0  # no such way to hold it
    photo.save(place / "nothing.jpg", exif=exif)
    Image.fromarray(np.full((12, 10), 40_000, np.uint16)).save(place / "deep.png")
    images = read(folder, resize=8, roles="")
    at = {path.split("/")[1]: i for i, path in enumerate(images.rows["path"]) if "c/" in path}
    upright = photo.transpose(Image.Transpose.ROTATE_270).resize((9, 8), Image.BILINEAR)
    expected = np.asarray(upright).transpose(2, 0, 1)[:, :, :8]
    for name in ("turned.png", "turned.webp", "turned.tiff", "profile.png", "said.png"):
        np.testing.assert_array_equal(images.read(np.array([at[name]]))[0], expected)
    assert (images.read(np.array([at["deep.png"]])) == 40_000 >> 8).all()
    said = datasets.conversions(folder / "images")
    assert [*said.values()] == [1, 1, 0, 6, 0, 0]
    light = images.read(np.array([at["said.jpg"]]))[0].float().mean(dim=(0, 1))
    assert light[-1] > 200 > 50 > light[0]  # what was above is at the right
    (folder / "images" / "c" / "more").mkdir()
    for inside in ("loose.png", "c/more/deeper.png"):
        shutil.copy(folder / "images" / "c" / "deep.png", folder / "images" / inside)
    said = datasets.conversions(folder / "images")
    assert [*said.items()][-1] == ("files are left out: .png", 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("class\na\n", "lacks role"),
        ("class,role\na,known\na,unknown\n", "'a' has several"),
        ("class,role\na,familiar\n", "known, negative, unknown or out; got familiar"),
        ("class,role\na,known\nb,\n", "every row needs class and role"),
        ("class,role\na,known\nb,known\n", "no class is unknown"),
        ("class,role\na,known\nb,unknown\n", "at least 2 known"),
        ("", "no csv file"),
        ("class;role\na;known\n", "has class;role; separate cells by commas"),
    ],
)
def test_a_file_of_roles_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        protocols.roles_csv(roles=io.StringIO(text))


def test_a_class_without_a_role_or_without_images_is_named(folder):
    (folder / "roles.csv").write_text(ROLES + "x,unknown\n")
    with pytest.raises(ValueError, match="x: no images"):
        experiment().parts(Machine())
    (folder / "roles.csv").write_text(ROLES.replace("n,negative\n", ""))
    with pytest.raises(ValueError, match="n: no role"):
        experiment().parts(Machine())
    (folder / "roles.csv").write_text(ROLES + "x,out\n")
    assert experiment().parts(Machine()).known == 2
    (folder / "roles.csv").write_text(ROLES.replace("c,", "\u00e4,"))
    for name, before in (("\u00e4 ", "c"), ("a\u0308", "\u00e4 ")):  # a blank; two letters for one
        (folder / "images" / before).rename(folder / "images" / name)
        with pytest.raises(ValueError, match="Two differ only in blanks or in how an accent is"):
            experiment().parts(Machine())


def test_roles_that_are_not_utf_8_are_blamed_on_their_own_file(folder):
    (folder / "roles.csv").write_bytes((ROLES + "Äpfel,out\n").encode("latin1"))
    with pytest.raises(ValueError, match=r"roles\.csv is no csv file in UTF-8"):
        experiment()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("epoch: 3", "nothing reads epoch=3 .*nearest is epochs"),
        ("shares: 1 2", "three numbers"),
        ("crop: 12", "crop <= resize"),
    ],
)
def test_a_benchmark_is_refused_with_the_reason(folder, text, reason):
    (folder / "my.yaml").write_text(
        f"{MY}{text}\n" if "crop" not in text else MY.replace("crop: 8", text)
    )
    with pytest.raises(ValueError, match=reason):
        experiment().parts(Machine())


def test_what_a_run_follows_from_has_the_roles_the_images_and_the_loss(folder):
    (folder / "mine.py").write_text(
        "def mine(out, labels, *, b=2.0):\n    return out.logits[:, 0] * b\n"
    )

    def settings():
        return experiment("loss=mine:mine b=3").settings

    before = settings()
    assert before["loss"]["b"] == 3.0
    (folder / "images" / "c" / "12.png").write_bytes(b"")
    assert settings()["reader"] != before["reader"]
    (folder / "roles.csv").write_text(ROLES.replace("u,unknown", "u,out"))
    assert settings()["protocol"] != before["protocol"]
    (folder / "mine.py").write_text(
        "def mine(out, labels, *, b=2.0):\n    return out.logits[:, 1] * b\n"
    )
    assert settings()["loss"] != before["loss"]


LOSSES = {
    "a mean": ("out.logits.logsumexp(1).mean()", "one finite value for each of 12"),
    "a constant": ("out.logits.detach()[:, 0]", "no gradient"),
    "an infinite slope": ("(out.logits[:, 0] * 0).abs().sqrt()", "gradient that is not finite"),
    "a wrong name": ("out.logit[:, 0]", "AttributeError"),
    "no number": ("out.logits[:, 0] * float('nan')", "one finite value"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_tried_before_a_kernel_starts(folder, name):
    body, reason = LOSSES[name]
    (folder / "mine.py").write_text(f"def mine(out, labels):\n    return {body}\n")
    file = folder / "21_vaze_train" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("run: mine\nsize: own\nbenchmark: my.yaml\noverrides: loss=mine:mine\n")
    with pytest.raises(ValueError, match=reason):
        plan(file)


def test_what_looks_at_a_run_does_not_run_its_loss(folder):
    text = "ROLES = ('known', 'negative')\nraise SystemExit\ndef mine(out, labels, *, b=1): ...\n"
    (folder / "mine.py").write_text(text)
    assert experiment("loss=mine:mine").settings["loss"]["b"] == 1
    assert losses.TAUGHT["mine:mine"] == ("known", "negative")
    with pytest.raises(ValueError, match="defines no function 'other'"):
        user.settings("mine:other")


@pytest.mark.parametrize("roles", ["= ['known', 'negative']", ": tuple = ('known', 'negative')"])
def test_the_roles_of_a_loss_may_be_a_list_and_have_a_type(folder, roles):
    (folder / "mine.py").write_text(f"ROLES{roles}\ndef mine(out, labels): ...\n")
    assert user.taught("mine:mine") == ("known", "negative")


@pytest.mark.parametrize(
    "roles", ["('known')", "('known', 'unknown')", "[]", "[['known']]", "{'known': 1}", "known"]
)
def test_roles_of_a_loss_that_are_none_are_refused_with_those_there_are(folder, roles):
    (folder / "mine.py").write_text(f"x = 1\nROLES = {roles}\ndef mine(out, labels): ...\n")
    reason = r"mine\.py, line 2: ROLES .*'known'.*'negative'.*; got "
    with pytest.raises(
        ValueError, match=reason + re.escape(ast.unparse(ast.parse(roles, mode="eval")))
    ):
        user.taught("mine:mine")


@pytest.mark.parametrize("default", ["BASE", "2 * 3", "{[]: 1}"])
def test_a_default_that_is_no_literal_is_named_with_its_file_and_setting(folder, default):
    (folder / "mine.py").write_text(f"BASE = 1\ndef mine(out, labels, *, b={default}): ...\n")
    reason = rf"mine\.py, line 2: b needs a plain value, such as 0\.5; got {re.escape(default)}"
    with pytest.raises(ValueError, match=reason):
        user.settings("mine:mine")


def test_the_dry_run_finds_broken_images_and_equal_ones_on_two_sides(folder):
    said = "\n".join(examined.benchmark(experiment(), Machine()))
    assert "known: 2 classes" in said
    rows = read(folder).rows.query("wnid == 'c'").set_index("split")["path"]
    copy = (folder / "images" / rows["train"].iloc[0]).read_bytes()
    (folder / "images" / rows["test"].iloc[0]).write_bytes(copy)
    with pytest.raises(
        ValueError, match=r"the same pixels: .*train.*test|same pixels: .*test.*train"
    ):
        list(examined.benchmark(experiment(), Machine()))
    (folder / "images" / rows["test"].iloc[0]).write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"1 images: .*it is no image\): replace it"):
        list(examined.benchmark(experiment(), Machine()))
    said = [*examined.benchmark(experiment("broken=skip"), Machine())]
    assert "1 images do not decode and are left out" in said


def test_the_dry_run_builds_the_network(folder):
    made = experiment("network=timm backbone=resnet18 features=512")
    size = sum(x.numel() for x in made.network(made.parts(Machine())).parameters())
    assert f"the network has {size:,} weights" in [*examined.benchmark(made, Machine())]
    with pytest.raises(
        ValueError, match=r"timm has no network 'resnet19'; the nearest: .*resnet18"
    ):
        [*examined.benchmark(experiment("network=timm backbone=resnet19"), Machine())]


def test_the_dry_run_names_classes_of_one_image_and_files_that_are_no_images(folder):
    for place in ("u", "c"):
        for path in sorted((folder / "images" / place).iterdir())[1:]:
            path.rename(path.with_suffix(".gif")) if place == "u" else None
    (folder / "images" / "c" / ".hidden").write_bytes(b"")
    said = "\n".join(examined.benchmark(experiment(), Machine()))
    assert "one image alone: u" in said
    assert "11 files are left out: .gif" in said
    for path in sorted((folder / "images" / "c").glob("*.png"))[1:]:
        path.unlink()
    with pytest.raises(ValueError, match="1 test images or more of each of 4 classes; c has 0"):
        experiment().parts(Machine())


def test_a_network_starts_from_weights_in_a_file_and_stays_frozen(folder):
    name, how = "resnet10t", {"classes": 3, "features": 512, "frozen": True}
    source = models.from_timm(classes=3, features=512, backbone=name).trunk
    torch.save(source.state_dict(), folder / "w.pth")
    net = models.from_timm(backbone=name, weights="w.pth", **how).train()
    images = torch.rand(4, 3, 32, 32)
    before = source.eval()(images)
    torch.optim.SGD(net.parameters(), lr=1.0, weight_decay=0.1).step()
    out = net(images)
    torch.testing.assert_close(out.features, before)
    out.logits.sum().backward()
    assert {n for n, p in net.named_parameters() if p.grad is not None} == {
        "head.weight",
        "head.bias",
    }
    save_file(source.state_dict(), folder / "w.safetensors")
    same = models.from_timm(backbone=name, weights="w.safetensors", **how)
    torch.testing.assert_close(same(images).features, before)
    torch.save({"x": torch.zeros(1)}, folder / "w.pth")
    with pytest.raises(ValueError, match=r"w\.pth lacks"):
        models.from_timm(backbone=name, weights="w.pth", **how)
    with pytest.raises(ValueError, match="random weights"):
        models.from_timm(backbone=name, **how)


def test_a_vision_transformer_is_told_the_side_and_the_channels():
    how = {"classes": 3, "features": 192, "backbone": "vit_tiny_patch16_224"}
    net = models.from_timm(**how, size=64, channels=1)
    assert net(torch.rand(2, 1, 64, 64)).logits.shape == (2, 3)


def commands():
    """The lines of the blocks of shell in the page *Your own*, in order."""
    page = workbook.PACKAGE / "docs" / "your-own.md"
    blocks = page.read_text(encoding="utf8").split("```sh\n")[1:]
    return [line for block in blocks for line in block.partition("```")[0].splitlines()]


def call(line, monkeypatch):
    """Do what a line of the page says."""
    program, *words = shlex.split(line)
    if program == "cd":
        monkeypatch.chdir(words[0])
    elif program == "python":
        subprocess.run([sys.executable, *words, "-p", "no:cacheprovider"], check=True)
    else:
        code, _, err = osnb(*words)
        assert code == 0, (line, err)


def shortened(file, text, other):
    """Let a file of the example ask for less."""
    assert text in file.read_text()
    file.write_text(file.read_text().replace(text, other))


@pytest.mark.slow
def test_the_commands_of_the_page_work_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OSNB_OUT", raising=False)
    here = tmp_path / "my"
    for line in commands():
        call(line, monkeypatch)
        monkeypatch.delenv("OSNB_OUT", raising=False)
        if line == "cd my":
            shortened(here / "my.yaml", "epochs: 20", "epochs: 8")
            shortened(here / "50_own" / "own.yaml", "size: own", "size: own\nresamples: 50")
    measures = pd.read_csv(here / "runs" / "50_own" / "own" / "measures.csv")
    asked = measures.query("role == 'unknown' and measure == 'auroc'")
    assert len(asked) == 3
    assert (asked["value"] > 0.6).all()
    assert "own.html" in (here / "report" / "index.html").read_text()
    assert not (here / "figures").exists()


def test_an_image_under_two_classes_is_refused_however_its_path_is_written(folder):
    (folder / "listed.csv").write_text("path,class\nimages/c/0.png,c\n./images//c/0.png,n\n")
    with pytest.raises(ValueError, match=r"listed.csv: './images//c/0.png' is listed twice"):
        read(folder, images="listed.csv")


def test_a_class_whose_name_no_file_can_hold_is_refused_in_folders_and_lists(folder):
    cup = (folder / "images" / "c").rename(folder / "images" / "caf\udce9")
    with pytest.raises(ValueError, match=r"a class of .*images needs names .* got 'caf.udce9'"):
        read(folder)
    cup.rename(folder / "images" / "c")
    (folder / "roles.csv").write_bytes(b"class,role\na b,known\ncaf\xed\xa0\x80,known\n")
    with pytest.raises(ValueError, match=r"roles.csv is no csv file in UTF-8"):
        read(folder)


def test_the_dry_run_names_nearly_equal_images_on_two_sides_and_no_others(folder, monkeypatch):
    said = "\n".join(examined.benchmark(experiment(), Machine()))
    assert "nearly" not in said  # all are drawn at random
    rows = read(folder).rows.query("wnid == 'c'")
    first, second, third = (
        rows.loc[rows["split"] == split, "path"].iloc[0] for split in ("train", "test", "val")
    )
    photo = np.asarray(Image.open(folder / "images" / first)).astype(int)
    again = (photo * 0.9 + 3).astype(np.uint8)  # darker: another file, other pixels
    Image.fromarray(again).save(folder / "images" / second)
    said = "\n".join(examined.benchmark(experiment(), Machine()))
    assert "on two sides and nearly the same" in said
    assert "(1 in all)" in said
    assert all(f"{name} ({split})" in said for name, split in ((first, "train"), (second, "test")))
    assert third not in said
    monkeypatch.setattr(examined, "find_spec", lambda _: None)
    said = "\n".join(examined.benchmark(experiment(), Machine()))
    assert "nearly equal images were not looked for, which needs imagehash" in said


# New images, and pixels as timm's networks want them

TIMM = "network=timm backbone=resnet10t features=512 normalise=timm"


def test_new_images_have_the_pixels_that_the_same_files_have_in_the_data_set(folder):
    ours = read(folder, roles="")
    new = datasets.new_images(folder / "images", shape=ours.shape, resize=10)
    assert [*new.rows["sample"]] == sorted(ours.rows["path"])
    order = ours.rows.sort_values("path").index.to_numpy()
    assert torch.equal(new.read(np.arange(48)), ours.read(order))
    grey = datasets.new_images(folder / "images" / "c" / "3.png", shape=(1, 8, 8), resize=8)
    assert grey.read(np.array([0])).shape == (1, 1, 8, 8)
    (folder / "list.csv").write_text("path\nimages/c/3.png\nimages/c/1.png\n")
    listed = datasets.new_images(folder / "list.csv", shape=ours.shape, resize=10)
    assert [*listed.rows["sample"]] == ["images/c/3.png", "images/c/1.png"]


def test_hidden_folders_hold_no_images(folder):
    """Jupyter leaves .ipynb_checkpoints in every folder in which it opens a file."""
    before = read(folder).rows
    hidden = folder / "images" / ".ipynb_checkpoints" / "deep"
    hidden.mkdir(parents=True)
    (hidden / "seen.txt").touch()
    Image.new("RGB", (12, 10)).save(hidden / "3.png")
    pd.testing.assert_frame_equal(read(folder).rows, before)
    new = datasets.new_images(folder / "images", shape=(3, 8, 8), resize=10)
    assert sorted(new.rows["path"]) == sorted(before["path"])
    assert [*datasets.conversions(folder / "images").values()] == [0] * 6
    (folder / "images").rename(folder / "train")
    (folder / "images" / ".ipynb_checkpoints").mkdir(parents=True)
    (folder / "train").rename(folder / "images" / "train")
    assert set(read(folder, roles="").rows["wnid"]) == {"a b", "c", "n", "u"}


def test_folders_may_be_links_and_a_circle_of_them_ends(folder):
    before, shown = read(folder).rows, experiment().settings["reader"]
    files = sorted(read(folder, roles="").rows["path"])
    for name in ("c", "u"):
        (folder / "images" / name).rename(folder / name)
        (folder / "images" / name).symlink_to(folder / name)
    assert experiment().settings["reader"] == shown  # the same names
    (folder / "u" / "round").symlink_to(folder)
    pd.testing.assert_frame_equal(read(folder).rows, before)
    new = datasets.new_images(folder / "images", shape=(3, 8, 8), resize=10).rows["path"]
    assert sorted(new) == files
    for name in ("c/12.png", "c/notes.txt"):
        shutil.copy(folder / "c" / "3.png", folder / name)
    assert [*datasets.conversions(folder / "images").items()][-1] == ("files are left out: .txt", 1)
    assert experiment().settings["reader"] != shown


def test_a_folder_without_folders_of_classes_is_refused(folder):
    (folder / "empty").mkdir()
    for images in ("empty", "images/c"):
        with pytest.raises(FileNotFoundError, match=f"{images} holds no folder named after a cl"):
            read(folder, images=images)


def test_a_verdict_needs_no_name_of_a_run_and_finds_the_benchmark_from_anywhere(
    folder, monkeypatch
):
    exp = experiment()
    weights = folder / "größe 1.pt"
    torch.save(exp.network(exp.parts(Machine())).state_dict(), weights)
    monkeypatch.setenv("OSNB_OUT", str(folder / "out"))
    monkeypatch.chdir(folder.parent)
    words = ["--benchmark", f"{folder.name}/my.yaml", "--weights", str(weights)]
    new = f"{folder.name}/images/c"
    code, out, err = osnb("verdict", new, *words, "--threshold", 0)
    assert (code, "of 12 images" in out + err) == (0, True), err
    assert "a name needs" in refused("predict", *words)  # which makes a run of that name
    code, _, err = osnb("predict", *words[:-1], weights.rename(folder / "w.pt"))
    assert (code, err) == (0, "")
    monkeypatch.chdir(folder)  # whose runs lie here, wherever OSNB_OUT points
    monkeypatch.setenv("OSNB_OUT", str(folder / "out"))
    code, _, err = osnb("predict", "--benchmark", "my.yaml", "--weights", "w.pt")
    assert (code, f"not under OSNB_OUT={folder / 'out'}: unset it" in err) == (0, True), err


@pytest.mark.parametrize("bits", [np.uint16, np.int32])
def test_images_of_more_bits_are_dark_only_if_all_are(folder, bits):
    place, found = folder / "images" / "c", []
    for level in (0, 200, 4095, 4096):  # a black one and a dark one are nothing beside a light one
        Image.fromarray(np.full((9, 9), level, bits)).save(place / f"{level}.tif")
        found.append([*datasets.conversions(folder / "images").items()])
    assert [deep for _, (_, deep), *_ in found] == [1, 2, 3, 4]
    assert [dark for _, _, (_, dark), *_ in found] == [1, 2, 3, 0]
    assert "none has a level above 4095: multiply all images by one number" in found[0][2][0]
    images = read(folder)
    assert len(images.read(np.arange(len(images.rows)))) == len(images.rows)


def test_files_of_several_pictures_are_counted_before_a_training(folder):
    place = folder / "images" / "c"
    pages = [Image.new("L", (9, 9), shade) for shade in (1, 2)]
    for name in ("pages.tif", "moves.png", "moves.webp"):
        pages[0].save(place / name, save_all=True, append_images=pages[1:], lossless=True)
    found = [*datasets.conversions(folder / "images").items()]
    assert [count for _, count in found] == [0, 0, 0, 0, 3, 0]
    assert "of which the first is read" in found[4][0]


def test_images_turned_by_a_quarter_are_kept_in_a_cache_too(folder):
    place, tag = folder / "images" / "c", Image.Exif()
    photo = Image.fromarray(np.arange(16 * 10 * 3, dtype=np.uint8).reshape(16, 10, 3))
    names = [f"{way}.{kind}" for way in range(1, 9) for kind in ("png", "jpg", "tiff")]
    for name in names:
        tag[0x0112] = int(name[0])
        photo.save(place / name, exif=tag)
    files = photographs.Files(place, names, 8, turn=True)
    stored = photographs.stored(files, folder / "cache", say=lambda _: None)
    assert (stored.marks == photographs.STORED).all()
    for position in range(len(names)):
        np.testing.assert_array_equal(stored.whole(position), files.whole(position))


def test_a_file_that_is_neither_list_nor_image_is_refused_with_the_endings_there_are(folder):
    Image.new("L", (9, 9)).save(folder / "photo.gif")
    with pytest.raises(ValueError, match=r"photo\.gif needs a name that ends in \.csv, \.jpeg, "):
        datasets.new_images(folder / "photo.gif", shape=(3, 8, 8), resize=8)


def test_new_images_that_are_not_there_or_twice_are_refused(folder):
    (folder / "list.csv").write_text("path\nimages/c/3.png\nimages//c/3.png\n")
    (folder / "empty").mkdir()
    for name, reason in (("none", "no such folder of images"), ("empty", "holds no image file")):
        with pytest.raises(FileNotFoundError, match=reason):
            datasets.new_images(folder / name, shape=(3, 8, 8), resize=8)
    with pytest.raises(ValueError, match=r"list.csv lists an image twice"):
        datasets.new_images(folder / "list.csv", shape=(3, 8, 8), resize=8)


def test_pixels_of_timm_are_those_of_its_own_config_in_training_and_for_new_images(folder):
    from osnb.datasets import vision  # noqa: F401, I001, it guards timm's torchvision
    import timm

    own = timm.data.resolve_model_data_config(timm.create_model("resnet10t"))
    (folder / "my.yaml").write_text("roles: roles.csv\nimages: images\n")
    whole = sized(experiment(TIMM).settings)
    side = own["input_size"][1]
    assert (whole["crop"], whole["resize"]) == (side, math.floor(side / own["crop_pct"]))
    exp = experiment(f"{TIMM} crop=32")
    parts = exp.parts(Machine())
    assert sized(exp.settings)["resize"] == math.floor(32 / own["crop_pct"]) > 32
    network = exp.network(parts)
    mean, std = (torch.tensor(own[name])[:, None, None] for name in ("mean", "std"))
    images = torch.rand(4, 3, 32, 32)
    direct = network.eval().trunk((images - mean) / std)
    torch.testing.assert_close(network(images).features, direct)
    torch.save(network.state_dict(), folder / "w.pt")
    made = predicted.loaded(exp, parts, [folder / "w.pt"])
    table, new = made.table(), predicted.of_new(made, folder / "images")[0]
    both = table.merge(new, on="sample", suffixes=("", "_new"))
    assert len(both) == len(table) > 12
    np.testing.assert_allclose(both["max_logit"], both["max_logit_new"], rtol=1e-4, atol=1e-5)
    assert both["max_logit"].nunique() > 12


def test_a_network_that_is_there_sees_pixels_as_normalise_says(folder):
    code = "return nn.Sequential(nn.Flatten(), nn.Linear(192, classes))"
    (folder / "net.py").write_text(f"from torch import nn\ndef net(*, classes):\n    {code}\n")
    network = predicted.own("net:net", experiment("normalise=cifar").parts(Machine()))
    mean, std = (torch.tensor(x)[:, None, None] for x in models.NORMALISE["cifar"])
    images = torch.rand(4, 3, 8, 8)
    expected = network[1](((images - mean) / std).flatten(1))
    torch.testing.assert_close(network(images), expected)


def test_pixels_of_timm_need_a_network_of_timm(folder):
    with pytest.raises(ValueError, match="normalise=timm needs network=timm"):
        experiment("normalise=timm")
    with pytest.raises(ValueError, match="says nothing of the pixels of 'nonet'"):
        models.timm_pixels("nonet")


def test_a_window_that_is_not_given_is_64_pixels_of_a_short_side_as_long(folder):
    (folder / "my.yaml").write_text("roles: roles.csv\nimages: images\n")
    assert experiment().parts(Machine()).images.shape == (3, 64, 64)
    assert sized(experiment("crop=9").settings)["resize"] == 9
    (folder / "my.yaml").write_text("roles: roles.csv\nimages: images\ncrop: 0\nresize: 0\n")
    assert experiment("crop=0 resize=0").parts(Machine()).images.shape == (3, 64, 64)


# What a pretraining could have seen

TAG = "resnet18.a1_in1k"


@pytest.mark.parametrize(
    ("backbone", "name", "answer"),
    [
        (TAG, "tiger", "yes"),  # a class of ILSVRC
        (TAG, "Tiger", "yes"),
        (TAG, "n02129604", "yes"),
        (TAG, "dog", "yes"),  # above many of them
        (TAG, "Siberian tiger", "not known"),  # no noun of WordNet
        (TAG, "octopus", "no"),
        ("resnet18.x_in21k_ft_in1k", "octopus", "yes"),
        ("resnet18.x_in12k", "octopus", "yes"),
        ("resnet18", "tiger", "not known"),  # no tag
        ("vit_base_patch16_clip_224.laion2b_ft_in1k", "octopus", "not known"),
        ("vit_base_patch16_clip_224.laion2b_ft_in1k", "tiger", "yes"),
        ("vit_base_patch16_clip_224.openai", "tiger", "not known"),
    ],
)
def test_a_class_was_seen_if_a_data_set_of_the_tag_has_it_or_what_is_near(backbone, name, answer):
    assert hierarchy.seen({"backbone": backbone, "weights": "w.pth"}, name) == answer


def test_random_weights_have_seen_nothing():
    assert hierarchy.seen({"backbone": TAG, "weights": ""}, "tiger") == "no"


def test_the_report_of_a_folder_says_of_each_run_what_its_pretraining_could_have_seen(
    tmp_path, monkeypatch
):
    from osnb.base import stamps
    from osnb.book import record
    from osnb.book.report import strange

    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    classes = ["cat", "tiger", "octopus", "crosshatched"]
    table = pd.DataFrame({"sample": classes, "class": classes, "source": "x", "group": ""})
    table = table.assign(label=[0, -2, -2, -2], role=["known", *["unknown"] * 3], pred=0, s=1.0)
    stamp = {"settings": {"network": {"backbone": TAG, "weights": "w.pth"}}}
    run = {"notebook": "21_vaze_train", "run": "x", "state": "done"}
    folder = tmp_path / "runs" / "21_vaze_train" / "x"
    folder.mkdir(parents=True)
    table.to_parquet(folder / "scores.parquet")
    stamps.write(folder / "scores.json", {key: of() for key, of in stamps.NEEDED.items()} | stamp)
    monkeypatch.setattr(record, "everything", lambda: [run, run | {"run": "not done"}])
    text = strange.build().read_text()
    assert "<td>no: octopus; not known: crosshatched; yes: tiger</td>" in text
    assert "unknown classes in the pretraining" in text


def test_a_report_of_a_folder_shows_text_and_pictures_of_an_evaluation_and_no_script(
    tmp_path, monkeypatch
):
    from osnb.book import record
    from osnb.book.report import strange

    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    size = {"image/png": {"width": '1" onerror="stolen()'}}
    shown = {"output_type": "display_data", "data": {"image/png": "iVBORw0K"}, "metadata": size}
    cell = {"cell_type": "code", "source": "1", "execution_count": 1, "metadata": {}}
    book = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {},
        "cells": [cell | {"outputs": [shown]}],
    }
    runs = [{"notebook": "50_own", "run": name, "state": "done"} for name in ("mine", "broken")]
    for run, text in zip(runs, (json.dumps(book), "{}"), strict=True):
        file = tmp_path / "runs" / "50_own" / run["run"] / "executed.ipynb"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    monkeypatch.setattr(record, "everything", lambda: runs)
    pages = strange.build().parent
    assert "base64,iVBORw0K" in (page := (pages / "mine.html").read_text())
    assert "onerror" not in page
    assert "cannot be shown" in (pages / "broken.html").read_text()


@pytest.mark.parametrize(("size", "own"), [("mini", False), ("own", True)])
def test_the_report_of_a_folder_is_of_ones_own_where_a_run_in_it_is(
    tmp_path, monkeypatch, size, own
):
    from osnb.book import record, report

    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    run = {"notebook": "50_own", "run": "x", "parameters": {"size": size}}
    monkeypatch.setattr(record, "everything", lambda: [run])
    monkeypatch.setattr(report, "build", lambda papers: "papers")
    monkeypatch.setattr(report.strange, "build", lambda: "own")
    assert osnb("report")[1].strip() == ("own" if own else "papers")


def test_a_report_of_a_folder_reads_tables_without_stamp_and_where_it_fails_the_old_one_stays(
    tmp_path, monkeypatch
):
    from osnb.book import record
    from osnb.book.report import strange

    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    file = tmp_path / "runs" / "21_vaze_train" / "x" / "scores.parquet"
    file.parent.mkdir(parents=True)
    run = {"notebook": "21_vaze_train", "run": "x", "state": "done"}
    monkeypatch.setattr(record, "everything", lambda: [run])
    table = pd.DataFrame({"sample": ["a"], "class": ["cat"], "source": "x", "group": ""})
    table = table.assign(label=-2, role="unknown", pred=0, s=1.0)
    table.to_parquet(file)  # somebody else's
    made = strange.build()
    assert "<td>x</td>" in made.read_text()
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(ValueError, match="parquet"):
        strange.build()
    assert "<td>x</td>" in made.read_text()


def test_images_are_near_up_to_eight_bits_of_a_hash_and_no_further():
    rows = pd.DataFrame({"sample": ["a", "b"], "split": ["train", "test"]})
    for bits, said in ((8, 1), (9, 0)):
        hashes = np.array([[0, 0], [2**bits - 1, 0]], np.uint64)
        assert len([*examined._near(rows, hashes)]) == said


def test_the_dry_run_refuses_equal_images_of_two_classes_on_one_side(folder):
    first, *_, last = read(folder).rows.query("split == 'train'").sort_values("wnid")["path"]
    (folder / "images" / last).write_bytes((folder / "images" / first).read_bytes())
    with pytest.raises(ValueError, match=r"the same pixels: .*train.*train"):
        list(examined.benchmark(experiment(), Machine()))
