"""Sensors that are rendered: cameras."""

from simstate.sensors.camera import Camera, SceneCameras

__all__ = ["Camera", "SceneCameras"]
