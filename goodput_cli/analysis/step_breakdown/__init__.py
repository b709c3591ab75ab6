"""Step breakdown (docs/inside-steps.md): where the time inside steps went, by phase and rank."""
