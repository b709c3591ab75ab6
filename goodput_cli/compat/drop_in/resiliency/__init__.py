"""In the place of `resiliency`: what measures goodput."""
