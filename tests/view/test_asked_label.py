"""A label about something: its place in the grid, its text, and its end."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from simstate.view.answer_label import Asked, shape_label


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


def test_the_text_of_a_shape_is_broken_into_lines_and_ends_with_the_step():
    worlds = SimpleNamespace(time=[0.5, 1.5])
    seen = SimpleNamespace(world=1, worlds=worlds)
    words = [f"word{k:03d}" for k in range(30)]
    place = np.array([1.0, 2.0, 3.0])
    label = shape_label(" ".join(words), place, seen)
    text, where = label(seen)
    assert where is place
    assert text.split() == words
    # Seven letters each, and the blanks between them.
    assert {len(line.split()) for line in text.splitlines()[:-1]} == {7}
    assert max(map(len, text.splitlines())) <= 60
    assert label(SimpleNamespace(world=0, worlds=worlds)) is None
    worlds.time[0] = 9.0
    assert label(seen) is not None
    worlds.time[1] = 1.6
    assert label(seen) is None
