"""Image files, and files in the layouts of data sets."""

import io
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import test_datasets
from PIL import Image

from osnb.datasets import READERS, BrokenImage, photographs
from osnb.datasets.vision import torchvision
from tests.tries import SPECIAL, call, folder, removed

PHOTO = Image.fromarray(test_datasets.noise(30, 40, 3))
BIG = 200_000_000  # bytes


def made(form: str, image: Image.Image = PHOTO, **how) -> bytes:
    sink = io.BytesIO()
    image.save(sink, form, **how)
    return sink.getvalue()


def jpeg(width: int, height: int) -> bytes:
    return made("JPEG", Image.fromarray(test_datasets.noise(height, width, 3)))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, *, depth=8, kind=2, data=b"", more=b"") -> bytes:
    """A png file that says any size."""
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def bmp() -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, 2**30, 2**30, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 100, 0, 0, 54) + info


def tiff_of_itself() -> bytes:
    entry = struct.pack("<H", 1) + struct.pack("<HHII", 256, 4, 1, 1)
    return b"II*\0\x08\0\0\0" + entry + struct.pack("<I", 8)


WIDTH = struct.pack("<HHI", 256, 4, 1)
GREY = test_datasets.noise(30, 40)
BAD = {
    "empty": b"",
    "a page": b"<html>404",
    "zero bytes": b"\0" * 1000,
    "a start alone": b"\xff\xd8",
    "twenty bytes": made("JPEG")[:20],
    "png of 60,000 squared": png(60000, 60000),
    "png of 2^31 - 1 squared": png(2**31 - 1, 2**31 - 1),
    "png of nothing": png(0, 0),
    "png of fifty bytes": png(40, 30, data=b"\0" * 50),
    "bmp of 2^30 squared": bmp(),
    "tiff of itself": tiff_of_itself(),
    "tiff of 2^31": made("TIFF").replace(WIDTH, struct.pack("<HHI", 256, 4, 2**31)),
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "pdf": b"%PDF-1.4",
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(%pipe%id) (r) file\n",
    "ppm of 99,999 squared": b"P6 99999 99999 255 ",
    "xpm": b"/* XPM */ static char",
    "icns": b"icns" + bytes(40),
    "psd": b"8BPS" + bytes(40),
    "fli": bytes(4) + b"\x11\xaf" + bytes(200),
    "zip": b"PK\3\4" + bytes(100),
    **{f"half a {form}": made(form)[: len(made(form)) // 2] for form in ("JPEG", "PNG", "WEBP")},
    **{f"half a {form}": made(form)[: len(made(form)) // 2] for form in ("BMP", "TIFF", "GIF")},
}
EXIF = Image.Exif()
EXIF[0x0112] = 99
STRANGE = {  # and perhaps right; what a bomb unpacks to must not be kept
    "jpeg without end": made("JPEG")[:-2],
    "jpeg of zeros inside": made("JPEG")[:300] + bytes(1000) + made("JPEG")[1300:],
    "a narrow jpeg": jpeg(65500, 1),
    "a tall jpeg": jpeg(1, 65500),
    "jpeg of one pixel": jpeg(1, 1),
    "png of 20,000 squared": png(20000, 20000, depth=1, kind=0, data=bytes(2501 * 20000)),
    "png of a text": png(40, 30, more=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(BIG)))),
    "png of colours": png(40, 30, more=chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(BIG)))),
    "cmyk": made("JPEG", PHOTO.convert("CMYK")),
    "grey": made("JPEG", PHOTO.convert("L")),
    "exif 99": made("JPEG", exif=EXIF),
    "exif of nothing": made("JPEG", exif=b"Exif\0\0" + b"\xff" * 60),
    "16 bits": made("PNG", Image.fromarray(GREY.astype(np.uint16) * 256)),
    "1 bit": made("PNG", Image.new("1", (40, 30))),
    "floats": made("TIFF", Image.fromarray(GREY.astype(np.float32))),
    "nan": made("TIFF", Image.fromarray(np.full((30, 40), np.nan, np.float32))),
    "a palette": made("PNG", Image.new("P", (40, 30)), transparency=0),
    "alpha": made("PNG", Image.new("LA", (40, 30))),
    "twenty pictures": made(
        "GIF",
        Image.new("P", (40, 30)),
        save_all=True,
        append_images=[Image.new("P", (40, 30), i) for i in range(20)],
    ),
}
DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "every byte": lambda file: file.write_bytes(bytes(range(256)) * 4),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "brackets": lambda file: file.write_bytes(b"[" * 100000),
    "backwards": lambda file: file.write_bytes(file.read_bytes()[::-1]),
}


def _photographs() -> Iterator[tuple[str, str]]:
    place = folder()
    file = place / "x.jpg"
    for turn in (False, True):
        for name, content in (BAD | STRANGE).items():
            file.write_bytes(content)
            files = photographs.Files(place, [file.name], 32, turn=turn)
            how = {"errors": (BrokenImage,), "taken": name in STRANGE}
            yield f"{name}{', upright' * turn}", call(lambda f=files: f.whole(0), str(file), **how)


def _kinds(place: Path) -> Iterator[Path]:
    """One file of each kind, relative to the folder of a data set."""
    seen = set()
    for path in sorted(file for file in place.rglob("*") if file.is_file()):
        photo = path.suffix.lower() in (".jpeg", ".jpg")
        kind = (path.suffix.lower(), "train" in path.name) if photo else path.name
        if kind not in seen and not path.name.startswith("._") and path.name != "one.JPEG":
            seen.add(kind)
            yield path.relative_to(place)


def _layout(name: str, make, read) -> Iterator[tuple[str, str]]:
    """Every kind of file of a data set damaged in every way; what is left may be one."""
    whole = folder()
    make(whole)
    for path in _kinds(whole):
        for how, damage in (DAMAGES | SPECIAL).items():
            root = folder()
            make(root)
            if how in SPECIAL:
                removed(root / path)
            damage(root / path)
            yield f"{name}: {path} {how}", call(lambda r=root: read(r), str(root), taken=True)
            shutil.rmtree(root)


def _all(name: str):
    def read(root: Path):
        images = READERS[name](root)
        return images.read(np.arange(len(images.rows)))

    return read


def tries() -> Iterator[tuple[str, str]]:
    # with its checksum nothing of CIFAR is read that has another byte
    torchvision.datasets.cifar.check_integrity = lambda path, md5=None: os.path.isfile(path)
    yield from _photographs()
    for name, make in test_datasets.MAKE.items():
        yield from _layout(name, make, _all(name))
    for layout in ("kaggle", "list", "devkit"):
        make = lambda root, layout=layout: test_datasets.make_ilsvrc(root, layout)  # noqa: E731
        yield from _layout(f"ilsvrc, {layout}", make, READERS["ilsvrc"])
