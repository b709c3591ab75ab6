"""Hangs (docs/hangs.md): the ranks that held the job up"""
