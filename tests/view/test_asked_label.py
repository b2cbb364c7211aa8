"""A label about something: its place in the grid, its text, and its end."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from simstate.view.answer_label import Asked


class Scene:
    """Keeps the labels that are added, and those that are removed."""

    def __init__(self) -> None:
        self.labels: list[SimpleNamespace] = []
        self.removed: list[SimpleNamespace] = []

    def add_label(self, name, text, position, anchor):
        label = SimpleNamespace(name=name, text=text, position=position)
        label.remove = lambda: self.removed.append(label)
        self.labels.append(label)
        return label


def test_a_label_follows_its_subject():
    scene, offset = Scene(), np.array([10.0, -20.0, 0.5])
    asked = Asked(SimpleNamespace(scene=scene), "/asked")
    world = SimpleNamespace(place=np.array([1.0, 2.0, 3.0]), text="one")
    asked.update(world, offset)
    assert asked.text == ""
    assert scene.labels == []
    asked.about(lambda seen: (seen.text, seen.place) if seen.text else None)
    asked.update(world, offset)
    (label,) = scene.labels
    assert (label.name, asked.text) == ("/asked", "one")
    np.testing.assert_allclose(label.position, [11.0, -18.0, 3.5])
    world.place, world.text = np.array([3.0, 2.0, 1.0]), "two"
    asked.update(world, 2.0 * offset)
    assert len(scene.labels) == 1
    assert asked.text == "two"
    np.testing.assert_allclose(label.position, [23.0, -38.0, 2.0])
    world.text = ""  # the subject is gone
    asked.update(world, offset)
    assert scene.removed == [label]
    assert asked.text == ""
    world.text = "three"
    asked.update(world, offset)
    assert len(scene.labels) == 1
