"""Timestamps: ISO-8601 text of any layout -> ns, exact to the nanosecond, one by one or a column at once."""
