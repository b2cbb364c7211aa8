"""Adapters to other libraries' interfaces, each imported when it is used."""
