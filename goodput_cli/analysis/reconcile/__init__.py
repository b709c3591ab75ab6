"""`goodput reconcile`: our account beside the reference library's."""
