"""The worlds: open calls, the ledger of their state, and the freshness of values."""

from simstate.world.layout import Packed
from simstate.world.ledger import Ledger
from simstate.world.memory import Backup, Chunk, memory_of
from simstate.world.slot import Kind, Owner, Reset, Slot, Trees, Write
from simstate.world.user_memory import adopt, user_memory

__all__ = [
    "Backup",
    "Chunk",
    "Kind",
    "Ledger",
    "Owner",
    "Packed",
    "Reset",
    "Slot",
    "Trees",
    "Write",
    "adopt",
    "memory_of",
    "user_memory",
]
