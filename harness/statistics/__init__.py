"""Paired statistics that a plan may declare: pure functions from counts or per-case values.

Everything here is a function of its arguments alone. Results are frozen dataclasses, wrong input
is a ValueError of one sentence. Sums and binomial tails are exact, so that the same evidence gives
the same digits on any machine.
"""
