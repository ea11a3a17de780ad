"""Runs of several rank counts held against one another: what the ranks shorten, what stays, what grows."""
