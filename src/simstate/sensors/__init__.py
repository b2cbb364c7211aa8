"""Sensors of a scene: cameras, contacts, rays."""

from simstate.sensors.camera import Camera, SceneCameras
from simstate.sensors.contact_sensor import ContactSensor, SceneContacts
from simstate.sensors.ray_sensor import RaySensor, SceneRays

__all__ = [
    "Camera",
    "ContactSensor",
    "RaySensor",
    "SceneCameras",
    "SceneContacts",
    "SceneRays",
]
