"""The worlds: open calls, the ledger of their state, and the freshness of values."""
