"""Converter of images to an upright thumbnail without metadata."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced

PIXELS: Final = 100_000_000
_SIDE = 512
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")


def convert(source: Path, into: Path) -> list[Produced]:
    """Make ``thumbnail.png``; see `Convert`."""
    outputs = Outputs(into)
    Image.MAX_IMAGE_PIXELS = None  # `_require_small` checks the size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about metadata, which is not kept
        try:
            with Image.open(source, formats=_FORMATS) as image:
                _require_small(image)
                image.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # a JPEG is then decoded at a reduced size
                thumbnail = ImageOps.exif_transpose(image)
                clear = "A" in thumbnail.getbands() or "transparency" in thumbnail.info
                thumbnail = thumbnail.convert("RGBA" if clear else "RGB")
                thumbnail.thumbnail((_SIDE, _SIDE))
        except UnidentifiedImageError as error:
            raise ConversionRefused("user", "The file is not an image of a supported format.") from error
        except (OSError, SyntaxError, ValueError, EOFError) as error:
            raise ConversionRefused("user", f"The image is damaged ({error}).") from error
    thumbnail.info.clear()
    thumbnail.save(outputs.place("thumbnail.png", "image/png"), format="PNG")
    return outputs.made


def _require_small(image: Image.Image) -> None:
    width, height = image.size
    if width * height > PIXELS:
        raise ConversionRefused(
            "unsupported", f"The image has {width} x {height} pixels; up to {PIXELS} are converted."
        )
