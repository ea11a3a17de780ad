"""Bytes and arithmetic against what a device can do: floors, shares of the step at a bound, modelled and measured."""
