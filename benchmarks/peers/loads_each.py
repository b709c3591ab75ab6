"""Parse each line by `orjson.loads` in a loop, and drop it: the least work of a line reader."""

import sys

import orjson

with open(sys.argv[1], "rb") as log:
    print(sum(1 for line in log if orjson.loads(line)))
