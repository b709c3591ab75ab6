"""Time of the insights of some logs, compared with their analysis: share, seconds of the analysis, of the insights."""

from __future__ import annotations

import sys
from time import process_time

import goodput_cli


def main() -> None:
    """Print one line per named log. The first analysis pays for imports, and does not count."""
    len(goodput_cli.analyze("sample_logs/llm-pretrain.jsonl").insights)
    for path in sys.argv[1:]:
        begin = process_time()
        analysis = goodput_cli.analyze(path)
        analysed = process_time()
        len(analysis.insights)
        made = process_time()
        print((made - analysed) / (analysed - begin), analysed - begin, made - analysed)


if __name__ == "__main__":
    main()
