"""The rules, section by section, and the engine beside the oracle."""
