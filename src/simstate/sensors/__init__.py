"""Sensors of a scene: cameras, contacts, rays."""

from simstate.sensors.camera import Camera, SceneCameras
from simstate.sensors.contacts import ContactSensor, SceneContacts
from simstate.sensors.rays import RaySensor, SceneRays

__all__ = [
    "Camera",
    "ContactSensor",
    "RaySensor",
    "SceneCameras",
    "SceneContacts",
    "SceneRays",
]
