"""Pictures in rows: contact sheets and the frames of several cameras."""

from __future__ import annotations

import math

import numpy as np


def tiled(pictures: np.ndarray) -> np.ndarray:
    """One picture of n, in rows of about equal number; (n, height, width, channels)."""
    count, height, width, channels = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.zeros((rows * columns, height, width, channels), dtype=pictures.dtype)
    sheet[:count] = pictures
    grid = sheet.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def reduced(picture: np.ndarray, side: int) -> np.ndarray:
    """Means over squares of pixels of an RGBA picture, weighted by opacity, uint8."""
    if side == 1:
        return picture
    height, width, _ = picture.shape
    blocks = picture.reshape(height // side, side, width // side, side, 4)
    values = blocks.astype(np.float32)
    alpha = values[..., 3:]
    total = alpha.sum((1, 3))
    colour = (values[..., :3] * alpha).sum((1, 3)) / np.maximum(total, 1.0)
    mean = total / (side * side)
    return np.round(np.concatenate([colour, mean], axis=2)).astype(np.uint8)
