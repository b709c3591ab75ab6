"""The reference library, ml-goodput-measurement, beside our own accounting: its own answer, and its rules as claims"""
