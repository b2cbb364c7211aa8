"""All benchmarks in one run: a table of ratios, and JSON with --json FILE."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import mujoco
import torch
from rich.console import Console
from rich.table import Table

import entity_data
import env_step
import free_flight
import integrators
import unified_state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the ratios here")
    args = parser.parse_args()
    versions = f"MuJoCo {mujoco.__version__}, torch {torch.__version__}"
    title = f"{os.cpu_count()} CPUs, {versions}; medians of interleaved repeats"
    table = Table(title=title)
    for header in ("what", "simstate", "other", "ratio", "spread"):
        table.add_column(header)
    results: dict[str, float] = {}
    parts = (
        entity_data.importing,
        entity_data.reading,
        entity_data.stepping,
        unified_state.converting,
        free_flight.flying,
        integrators.fixed_steps,
        integrators.adaptive_steps,
        env_step.stepping,
    )
    for part in parts:
        part(table, results)
    Console(width=140).print(table)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
