"""NumpyStreams: for each world, the stream of a NumPy generator, in the ledger.

World i draws what `numpy.random.Generator(PCG64(SeedSequence(seed + i)))` draws, bit
for bit, which is the generator of Gymnasium's environments. `sim.rng` is the faster
choice where the numbers need not be NumPy's: it draws for all worlds at once.
"""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import PCG64, Generator, SeedSequence

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, int_list, select
from simstate.world import Ledger
from simstate.world.random import WorldRandom

_WORDS = 6
"""State and increment of 128 bits each; a half of a draw that is kept, and its flag."""
_MASK = 2**64 - 1


class NumpyStreams:
    """One PCG64 stream for each world; a reset keeps its state.

    The slot "random/pcg64" holds the states: a snapshot includes them, and an
    interrupted call is undone with what it drew.
    """

    def __init__(self, ledger: Ledger, rng: WorldRandom, first_world: int) -> None:
        self._first_world = first_world
        self._num_envs = ledger.num_envs
        slot = ledger.memory(
            "random/pcg64", (_WORDS,), torch.int64, None, moves=True, optional=True
        )
        self._states = slot.tensor
        seeds = enumerate(rng.seeds(), start=first_world)
        self.seed([seed + world for world, seed in seeds])
        slot.initial = slot.tensor.clone()

    def seed(self, seed: int | Sequence[int], env_ids: Ids = None) -> None:
        """Start the streams of some worlds again; None: all.

        Args:
            seed: world i, by its global id, gets the stream of `seed + i`; a sequence
                has the seed of each of these worlds.
            env_ids: the worlds.
        """
        worlds = self._worlds(env_ids)
        if isinstance(seed, int):
            whole_number("seed", seed, 0)
            seeds = [seed + self._first_world + world for world in worlds]
        else:
            seeds = [whole_number("seed", value, 0) for value in seed]
        if len(seeds) != len(worlds):
            raise InvalidInputError(
                f"seed must be one number, or one for each of the {len(worlds)} "
                f"worlds; got {len(seeds)}.",
                name="seed",
            )
        for world, value in zip(worlds, seeds, strict=True):
            self._write(world, PCG64(SeedSequence(value)))

    def generators(self, env_ids: Ids = None) -> Iterator[tuple[int, Generator]]:
        """Yield each world with its generator, whose state is stored after its turn."""
        bits = PCG64(0)
        generator = Generator(bits)
        for world in self._worlds(env_ids):
            bits.state = self._read(world)
            yield world, generator
            self._write(world, bits)

    def draw(
        self, function: Callable[[Generator], Any], env_ids: Ids = None
    ) -> np.ndarray[Any, Any]:
        """Return what `function(generator)` gives in some worlds; shape (n, …)."""
        return np.array([function(rng) for _, rng in self.generators(env_ids)])

    def _worlds(self, env_ids: Ids) -> list[int]:
        chosen = select(env_ids, self._num_envs, "env", torch.device("cpu"))
        return int_list(chosen.tensor(torch.device("cpu")))

    def _read(self, world: int) -> Any:
        """Return the state of a stream as PCG64 takes it."""
        words = [word & _MASK for word in int_list(self._states[world])]
        return {
            "bit_generator": "PCG64",
            "state": {
                "state": words[0] << 64 | words[1],
                "inc": words[2] << 64 | words[3],
            },
            "has_uint32": words[4],
            "uinteger": words[5],
        }

    def _write(self, world: int, bits: PCG64) -> None:
        found: Any = bits.state
        state, inc = found["state"]["state"], found["state"]["inc"]
        words = (state >> 64, state, inc >> 64, inc, found["has_uint32"])
        row = [word & _MASK for word in (*words, found["uinteger"])]
        signed = np.array(row, np.uint64).view(np.int64)
        self._states.data[world] = torch.from_numpy(signed)
