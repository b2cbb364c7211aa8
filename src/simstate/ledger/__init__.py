"""The ledger: all that a world is, in named slots, and calls that are transactions."""

from simstate.ledger.layout import Packed
from simstate.ledger.ledger import Ledger
from simstate.ledger.memory import Backup, Chunk, memory_of
from simstate.ledger.slot import Kind, Owner, Reset, Slot, Trees, Write
from simstate.ledger.user_memory import adopt, user_memory

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
