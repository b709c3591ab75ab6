"""Work of the kept steps: tokens, MFU, cost, and when the job will be done."""
