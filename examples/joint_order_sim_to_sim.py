"""Carry a policy to another simulator's joint order, by names and without a table.

MuJoCo lists the joints leg by leg, other simulators hip by hip. A policy that was
trained there reads and commands the joints in its own order. `find_joints` with
preserve_order=True gives the ids once; a state is reordered by names in one call; and a
joint that one side lacks is an error that names it.
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, SimStateError, Simulation

LEGS = ("FL", "FR", "RL", "RR")
POLICY_ORDER = [f"{leg}_{part}" for part in ("hip", "thigh", "calf") for leg in LEGS]


def main() -> None:
    """Read in the policy's order, command in it, and come back."""
    start = InitialStateCfg(keyframe="home", joint_pos={"FL_hip": 0.2})
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped", init_state=start)})
    sim = Simulation(scene, num_envs=4)
    robot = sim.scene["robot"]
    print("here:  ", ", ".join(robot.joint_names[:5]), "…")
    print("policy:", ", ".join(POLICY_ORDER[:5]), "…")

    ids, names = robot.find_joints(POLICY_ORDER, preserve_order=True)
    assert list(names) == POLICY_ORDER
    observation = robot.data.joint_pos[:, ids]
    print(
        f"observation in the policy's order [rad]: "
        f"{[round(x, 2) for x in observation[0, :5].tolist()]}"
    )

    action = observation.clone()  # a policy that holds its pose
    action[:, POLICY_ORDER.index("RR_calf")] -= 0.1
    robot.set_joint_position_target(action, joint_ids=ids)
    target = robot.data.joint_pos_target[0, robot.joint_names.index("RR_calf")]
    print(f"target of RR_calf: {float(target):.2f} rad")

    state = sim.get_states(mode="tensor").robots["robot"]
    theirs = state.reorder(POLICY_ORDER)
    back = theirs.reorder(robot.joint_names)
    lost = (back.dof_pos - state.dof_pos).abs().max()
    print(f"there and back again: largest difference {float(lost):g} rad")
    assert torch.equal(theirs.dof_pos, observation)
    try:
        state.reorder([*POLICY_ORDER[:-1], "RR_ankle"])
    except SimStateError as error:
        print(f"a joint that is not there: {error}")


if __name__ == "__main__":
    main()
