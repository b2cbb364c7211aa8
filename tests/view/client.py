"""A client of the viewer that is no browser: it speaks viser's websocket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec.msgpack
import numpy as np
import viser
import zstandard
from websockets.sync.client import connect

from simstate.view.panel import ICONS

PATIENCE = 60.0


class Client:
    """Connects, collects what the server says of its controls, and answers."""

    def __init__(self, url: str, **options: Any) -> None:
        parts = urlsplit(url)
        address = f"ws://{parts.netloc}{parts.path.rstrip('/')}"
        self.socket = connect(
            address, subprotocols=[f"viser-v{viser.__version__}"], max_size=None,
            **options,
        )  # fmt: skip
        self.messages: list[dict[str, Any]] = []
        self.send(
            "ViewerCameraMessage", wxyz=[1, 0, 0, 0], position=[3, 3, 3], fov=1.0,
            near=0.1, far=100.0, image_height=300, image_width=400, look_at=[0, 0, 0],
            up_direction=[0, 0, 1],
        )  # fmt: skip

    def send(self, kind: str, **values: Any) -> None:
        """A message as a browser would send it."""
        self.socket.send(msgspec.msgpack.encode({"type": kind, **values}))

    def receive(self, until: Callable[[], Any]) -> Any:
        """Read what comes until something holds, and give it."""
        end = time.monotonic() + PATIENCE
        while not (found := until()):
            assert time.monotonic() < end, "the server did not say it in time"
            data = self.socket.recv(timeout=PATIENCE)
            assert isinstance(data, bytes)
            size = int.from_bytes(data[8:16], "little")
            inner = zstandard.ZstdDecompressor().decompress(data[16 : 16 + size])
            batch = msgspec.msgpack.decode(inner)
            arrays = buffers(data, 16 + size, batch.get("binaryBufferLengths", ()))
            self.messages += with_arrays(batch["messages"], arrays)
        return found

    def control(self, label: str, kind: str = "") -> str:
        """The id of the control with a label."""

        def found() -> str | None:
            for message in self.messages:
                props = message.get("props") or {}
                if props.get("label") == label and kind in message["type"]:
                    return message["uuid"]
            return None

        return self.receive(found)

    def boxes(self, labels: str, count: int) -> list[tuple[str, bool]]:
        """Label and value of the first checkboxes with one of some letters."""

        def found() -> list[tuple[str, bool]] | None:
            given = [
                (message["props"]["label"], message["value"])
                for message in self.messages
                if "Checkbox" in message["type"] and message["props"]["label"] in labels
            ]
            return given[:count] if len(given) >= count else None

        return self.receive(found)

    def set(self, label: str, value: Any) -> None:
        """Give a control a value, or press it with True; icons by their words."""
        if label == "play" and not value:
            label = "pause"
        if label in ICONS:
            label, value = "run", ICONS[label]
        self.send(
            "GuiUpdateMessage", uuid=self.control(label), updates={"value": value}
        )

    def close(self) -> None:
        """Go away."""
        self.socket.close()


def buffers(data: bytes, start: int, lengths: Iterable[int]) -> list[bytes]:
    """The arrays behind a batch of messages, each at a multiple of eight bytes."""
    found = []
    for length in lengths:
        start += -start % 8
        found.append(data[start : start + length])
        start += length
    return found


def with_arrays(part: Any, arrays: list[bytes]) -> Any:
    """A part of a message with arrays in place of references to them."""
    if isinstance(part, dict):
        if "__binary_index" in part:
            return np.frombuffer(arrays[part["__binary_index"]], part["dtype"])
        return {name: with_arrays(value, arrays) for name, value in part.items()}
    if isinstance(part, list):
        return [with_arrays(value, arrays) for value in part]
    return part
