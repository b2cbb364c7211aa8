"""Draws the pictures of docs/gallery.md: runs its code, section by section.

python docs/gallery.py [HEADING …]    # part of `make docs`; needs the extra `view`
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
from markdown.extensions.toc import slugify
from PIL import Image

DOCS = Path(__file__).parent
FOLDER = DOCS / "figures" / "gallery"
PAPER = (255, 255, 255)


def sections() -> dict[str, str]:
    """Return the code of each section of gallery.md by the name of its picture."""
    parts = re.split(r"^## (.*)$", (DOCS / "gallery.md").read_text(), flags=re.M)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {
        slugify(title, "-"): "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
        for title, text in pairs
    }


def save(picture: np.ndarray, name: str) -> None:
    """Write a picture as a JPEG file; a transparent one on white."""
    image = Image.fromarray(picture)
    if image.mode == "RGBA":
        paper = Image.new("RGBA", image.size, (*PAPER, 255))
        image = Image.alpha_composite(paper, image).convert("RGB")
    path = FOLDER / f"{name}.jpg"
    image.save(path, quality=88, optimize=True)
    print(f"docs/figures/gallery/{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def main(only: list[str]) -> None:
    """Run the page from top to bottom, and save the pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    names: dict[str, object] = {"__name__": "gallery"}
    for title, code in sections().items():
        exec(compile(code, f"gallery.md: {title}", "exec"), names)
        if not only or title in only:
            save(np.asarray(names["picture"]), title)


if __name__ == "__main__":
    main(sys.argv[1:])
