"""The ledger: all that a world is, in named slots, and calls that are transactions."""

from simstate.ledger.ledger import Ledger
from simstate.ledger.memory import Backup, Chunk
from simstate.ledger.slot import Kind, Owner, Reset, Slot, Trees, Write
from simstate.ledger.user_memory import adopt, user_memory

__all__ = [
    "Backup",
    "Chunk",
    "Kind",
    "Ledger",
    "Owner",
    "Reset",
    "Slot",
    "Trees",
    "Write",
    "adopt",
    "user_memory",
]
