"""MCAP for Foxglove: columns as JSON messages whose schemas state unit and axes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from simstate.base.checks import all_of
from simstate.base.extras import library
from simstate.base.files import replacing
from simstate.data.datasets.recorded_episodes import check_target
from simstate.record import Recording
from simstate.record.columns import CAMERA, EACH
from simstate.record.header import TIME
from simstate.record.recording_file import opened

_STAMP = {
    "type": "object",
    "title": "time",
    "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
}
_TRANSFORMS = "foxglove.FrameTransforms"
_IMAGE = "foxglove.RawImage"
_POSES = "body_link_pose_w"


def write_foxglove(
    recording: str | Path | Recording,
    path: str | Path,
    *,
    worlds: Sequence[int] | Tensor | None = None,
    names: Sequence[str] | None = None,
) -> int:
    """Write columns of a recording as a log for Foxglove; return the message count.

    Each column is a topic `/world_3/robot.joint_pos`, with a property named after each
    component; non-finite values (NaN, ∞) are null. A recorded `body_link_pose_w` is
    also `/tf`, so that the 3D panel shows the links, and recorded pictures are images.
    The log time is the time since the start of the recording, which only increases. The
    simulation time, which restarts when a world is reset, is a column.

    Args:
        recording: the recording or its file.
        path: the .mcap file, which is replaced.
        worlds: worlds to write; None: the first recorded one.
        names: columns to write; None: all.
    """
    mcap = library("mcap.writer", "record", "Recordings")
    with opened(recording) as source:
        chosen = list(source.places(worlds, 1))
        columns = [TIME, *source.names]
        if names is not None:
            columns = [source.full_name(n) for n in all_of("names", names, str)]
        check_target(path, source.path)
        with replacing(Path(path)) as part, open(part, "wb") as file:
            writer = mcap.Writer(file)
            writer.start(profile="", library="simstate")
            count = _Log(writer, source, chosen, columns).write()
            writer.finish()
    return count


class _Log:
    """The channels of a log, and the messages on them."""

    def __init__(
        self,
        writer: Any,
        recording: Recording,
        worlds: Sequence[int],
        columns: Sequence[str],
    ) -> None:
        self._writer, self._recording = writer, recording
        self._worlds = {world: recording.place(world) for world in worlds}
        self._keys: dict[str, list[str]] = {}
        self._channels: dict[tuple[int, str], int] = {}
        self._frames: dict[str, list[str]] = {}
        for name in columns:
            is_image = name.startswith(CAMERA)
            schema = self._image_schema() if is_image else self._schema(name)
            for world in worlds:
                topic = f"/world_{world}/{name}"
                self._channels[world, name] = self._channel(topic, schema)
            if name.rpartition(".")[2] == _POSES:
                labels = recording.contract(name)["names"]
                self._frames[name] = [n.rpartition(".")[0] for n in labels[::7]]
        self._tf = self._channel("/tf", self._transform_schema())

    def write(self) -> int:
        """Write all messages; return their number."""
        count = 0
        elapsed = self._recording.elapsed.numpy()
        for block in self._recording.blocks:
            columns = self._recording.read_block(block)
            for sample in range(block.samples):
                time = round(float(elapsed[block.first_sample + sample]) * 1e9)
                for world, place in self._worlds.items():
                    count += self._write_sample(columns, sample, world, place, time)
        return count

    def _write_sample(
        self,
        columns: dict[str, np.ndarray],
        sample: int,
        world: int,
        place: int,
        time: int,
    ) -> int:
        stamp = {"sec": time // 10**9, "nsec": time % 10**9}
        count = 0
        for (w, name), channel in self._channels.items():
            if w != world:
                continue
            values = columns[name][sample, place]
            if name.startswith(CAMERA):
                fields = _image(name.removeprefix(CAMERA), values)
            else:
                fields = dict(zip(self._keys[name], _plain(values), strict=True))
            self._add(channel, time, {"timestamp": stamp, **fields})
            count += 1
        for name, frames in self._frames.items():
            poses = columns[name][sample, place]
            transforms = [
                _transform(stamp, f"world_{world}/{frame}", pose)
                for frame, pose in zip(frames, poses.tolist(), strict=True)
            ]
            self._add(self._tf, time, {"transforms": transforms})
            count += 1
        return count

    def _add(self, channel: int, time: int, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        self._writer.add_message(channel, time, data, time)

    def _channel(self, topic: str, schema: int) -> int:
        return self._writer.register_channel(topic, "json", schema)

    def _schema(self, name: str) -> int:
        """Register the schema of a column: a property and unit for each component."""
        contract = self._recording.contract(name)
        width = math.prod(contract["shape"])
        keys = contract["names"] or [f"value_{k}" for k in range(width)]
        self._keys[name] = keys if width != 1 or contract["names"] else ["value"]
        kind = "boolean" if contract["dtype"] == "bool" else "number"
        fields = self._recording.component_contracts(name)
        each = {
            key: {
                "type": kind,
                "description": f"[{one.unit}]",
                **{word: getattr(one, word) for word in EACH},
            }
            for key, one in zip(self._keys[name], fields, strict=True)
        }
        schema = {
            "type": "object",
            "title": name,
            "description": contract["doc"],
            "source": contract.get("source", ""),
            **{word: contract[word] for word in EACH},
            "properties": {"timestamp": _STAMP, **each},
        }
        data = json.dumps(schema, ensure_ascii=False).encode()
        return self._writer.register_schema(f"simstate.{name}", "jsonschema", data)

    def _image_schema(self) -> int:
        """Register Foxglove's schema for images."""
        whole, text = {"type": "integer"}, {"type": "string"}
        schema = {
            "type": "object",
            "title": _IMAGE,
            "properties": {
                "timestamp": _STAMP,
                "frame_id": text,
                "width": whole,
                "height": whole,
                "encoding": text,
                "step": whole,
                "data": {**text, "contentEncoding": "base64"},
            },
        }
        data = json.dumps(schema).encode()
        return self._writer.register_schema(_IMAGE, "jsonschema", data)

    def _transform_schema(self) -> int:
        """Register Foxglove's schema for frames."""
        number = {"type": "number"}
        vector = {"type": "object", "properties": dict.fromkeys("xyz", number)}
        turn = {"type": "object", "properties": dict.fromkeys("xyzw", number)}
        one = {
            "type": "object",
            "properties": {
                "timestamp": _STAMP,
                "parent_frame_id": {"type": "string"},
                "child_frame_id": {"type": "string"},
                "translation": vector,
                "rotation": turn,
            },
        }
        many = {"transforms": {"type": "array", "items": one}}
        schema = {"type": "object", "title": _TRANSFORMS, "properties": many}
        data = json.dumps(schema).encode()
        return self._writer.register_schema(_TRANSFORMS, "jsonschema", data)


def _plain(values: np.ndarray) -> list[float | None]:
    """Return values for JSON: null for NaN and infinity."""
    return [x if math.isfinite(x) else None for x in values.reshape(-1).tolist()]


def _transform(
    stamp: dict[str, int], frame: str, pose: Sequence[float]
) -> dict[str, Any]:
    """Return a pose (x, y, z, qw, qx, qy, qz), world axes, as Foxglove's message."""
    return {
        "timestamp": stamp,
        "parent_frame_id": "world",
        "child_frame_id": frame,
        "translation": dict(zip("xyz", pose[:3], strict=True)),
        "rotation": dict(zip("wxyz", pose[3:], strict=True)),
    }


def _image(camera: str, picture: np.ndarray) -> dict[str, Any]:
    """Return a picture (H, W, 3) as Foxglove's message."""
    height, width, _ = picture.shape
    return {
        "frame_id": camera,
        "width": width,
        "height": height,
        "encoding": "rgb8",
        "step": 3 * width,
        "data": base64.b64encode(picture.tobytes()).decode(),
    }
