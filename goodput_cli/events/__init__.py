"""Translation of log lines of every format into one canonical table.

The order of reading, from bytes to rows:

1. `read` (or `live`, for growing logs) opens the sources and passes their batches on.
2. `documents` chooses the reader of each document: `json_documents`, `text/`, `tensorboard` ... Each returns a
   `ParsedPart`. `fast_json` is the fast path of JSON lines: lines of a known shape become columns (`columnar`) without
   parsing.
3. `decode` unwraps the envelope (`envelope`), groups records of the same keys, asks `formats/registry` which format
   reads them, finds their jobs, and lets the format translate one group at a time.
4. A format in `formats/` reads values (`values`, `timestamps`) and adds rows (`rows`).
5. `rows` sorts the rows in order of arrival, in growing columns: the `EventTable` of `schema`.
"""
