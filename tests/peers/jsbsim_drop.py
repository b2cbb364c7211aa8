"""A heavy sphere that falls through the standard atmosphere, in JSBSim.

Runs in the peers' environment and prints JSON: inertial positions and velocities, and
the air at altitudes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import jsbsim

FOOT, SLUG = 0.3048, 14.593902937206364
MODEL = """<?xml version="1.0"?>
<fdm_config name="drop" version="2.0">
 <fileheader/>
 <metrics>
  <wingarea unit="M2">1</wingarea><wingspan unit="M">1</wingspan>
  <chord unit="M">1</chord>
  <location name="AERORP" unit="M"><x>0</x><y>0</y><z>0</z></location>
 </metrics>
 <mass_balance>
  <ixx unit="KG*M2">10</ixx><iyy unit="KG*M2">10</iyy><izz unit="KG*M2">10</izz>
  <emptywt unit="KG">{mass!r}</emptywt>
  <location name="CG" unit="M"><x>0</x><y>0</y><z>0</z></location>
 </mass_balance>
 <ground_reactions/><propulsion/><flight_control name="none"/>
 <aerodynamics>
  <axis name="DRAG"><function name="aero/drag"><product>
   <property>aero/qbar-psf</property><value>{area!r}</value>
  </product></function></axis>
 </aerodynamics>
</fdm_config>
"""


def vector(fdm: jsbsim.FGFDMExec, start: str, end: str) -> list[float]:
    """Three properties, in metres."""
    return [fdm[f"{start}{axis}{end}"] * FOOT for axis in "xyz"]


def drop(case: dict, folder: Path) -> dict:
    """The fall, sampled every second."""
    (folder / "aircraft" / "drop").mkdir(parents=True)
    text = MODEL.format(mass=case["mass"], area=case["area"] / FOOT**2)
    (folder / "aircraft" / "drop" / "drop.xml").write_text(text)
    fdm = jsbsim.FGFDMExec(str(folder))
    fdm.set_debug_level(0)
    fdm.load_model("drop")
    fdm.set_dt(case["step"])
    fdm["ic/h-sl-ft"] = case["height"] / FOOT
    fdm["ic/lat-geod-deg"] = case["latitude"]
    fdm["ic/long-gc-deg"] = 0.0
    fdm.run_ic()
    rows = []
    every = round(1 / case["step"])
    for k in range(int(case["seconds"]) * every + 1):
        if k % every == 0:
            place = vector(fdm, "position/eci-", "-ft")
            rows.append([*place, *vector(fdm, "velocities/eci-", "-fps")])
        fdm.run()
    return {"rows": rows}


def air(case: dict, folder: Path) -> dict:
    """Temperature [K], pressure [Pa], density [kg/m³], speed of sound by altitude."""
    fdm = jsbsim.FGFDMExec(str(folder))
    fdm.set_debug_level(0)
    fdm.load_model("drop")
    found = []
    for height in case["altitudes"]:
        fdm["ic/h-sl-ft"] = height / FOOT
        fdm.run_ic()
        found.append(
            [
                fdm["atmosphere/T-R"] / 1.8,
                fdm["atmosphere/P-psf"] * 47.88025898,
                fdm["atmosphere/rho-slugs_ft3"] * SLUG / FOOT**3,
                fdm["atmosphere/a-fps"] * FOOT,
            ]
        )
    return {"air": found}


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    said = os.dup(1)  # JSBSim writes its banner to the standard output
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory() as name:
        result = drop(given, Path(name)) | air(given, Path(name))
    os.write(said, json.dumps(result).encode())
