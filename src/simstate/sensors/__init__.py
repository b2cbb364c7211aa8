"""Sensors of a scene: cameras, contacts."""

from simstate.sensors.camera import Camera, SceneCameras
from simstate.sensors.contacts import ContactSensor, SceneContacts

__all__ = ["Camera", "ContactSensor", "SceneCameras", "SceneContacts"]
