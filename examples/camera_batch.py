"""Images of many worlds as one batch, without OpenGL.

A camera looks down at a cube from 1 m; in each world the cube stands on a pedestal of
another height (it is moved by hand and not stepped). Depth is measured along the
optical axis, so the pixel in the middle reads 1 m less the height of the cube's upper
face, and the cube's edge in pixels grows as it comes nearer.
"""

import torch

from simstate import CameraCfg, EntityCfg, SceneCfg, Simulation

EDGE = 0.05  # m


def main() -> None:
    """Render eight worlds at once and measure in the images."""
    scene = SceneCfg(
        entities={"cube": EntityCfg(model="cube")},
        cameras={
            "above": CameraCfg(
                pos=(0.0, 0.0, 1.0),
                rot=(1.0, 0.0, 0.0, 0.0),
                width=129,
                height=129,
                fovy=20.0,
            )
        },
        timestep=0.005,
    )
    sim = Simulation(scene, num_envs=8)
    cube, camera = sim.scene["cube"], sim.cameras["above"]
    pose = cube.data.root_link_pose_w.clone()
    pose[:, 2] = torch.linspace(0.025, 0.375, 8, dtype=sim.dtype)
    cube.write_root_link_pose_to_sim(pose)

    print(
        f"rgb {tuple(camera.rgb.shape)} {camera.rgb.dtype}, "
        f"depth {tuple(camera.depth.shape)} in metres"
    )
    measured = camera.depth[:, 64, 64].double()
    expected = 1.0 - (pose[:, 2] + EDGE / 2)
    worst = (measured - expected).abs().max()
    focal = float(camera.intrinsic[0, 0, 0])
    geom = sim.model.geom("cube/cube").id
    for k in (0, 4, 7):
        edge = float((camera.segmentation[k] == geom).sum()) ** 0.5
        # The upper face hides the others: its edge in pixels is f · edge / depth.
        seen = focal * EDGE / float(expected[k])
        print(
            f"world {k}: depth {float(measured[k]):.4f} m (expected "
            f"{float(expected[k]):.4f} m), edge of {edge:.1f} pixels (expected "
            f"{seen:.1f})"
        )
    print(f"largest error in depth: {float(worst):.1e} m")


if __name__ == "__main__":
    main()
