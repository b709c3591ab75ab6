"""The rules, section by section, and the engine compared with the oracle."""
