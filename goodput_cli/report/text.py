"""The earlier place of `goodput_cli.plugins.safe`."""

from goodput_cli.vocabulary.text import safe as safe
