"""The earlier place of `goodput_cli.watch`."""

from goodput_cli.api.watch import Update as Update
from goodput_cli.api.watch import watch as watch
