"""What a line means: logs of every format become one canonical table.

The order of reading, from bytes to rows:

1. `read` (or `live`, for logs that grow) opens the sources and passes their batches on.
2. `documents` chooses what reads each document: `json_documents`, `text/`, `tensorboard` ... Each gives
   `Parsed`. `fast_json` is the fast path of JSON lines: lines of a known shape become columns (`columnar`) without
   being parsed.
3. `decode` takes the envelope off (`envelope`), groups records of the same keys, asks `formats/registry` which format
   reads them, finds their jobs, and lets the format translate a group at a time.
4. A format in `formats/` reads values (`values`, `timestamps`) and adds rows (`rows`).
5. `rows` puts the rows in order of arrival, in columns that grow: the `EventTable` of `schema`.
"""
