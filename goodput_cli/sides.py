"""The earlier place of `goodput_cli.compare`."""

from goodput_cli.api.compare import compare as compare
