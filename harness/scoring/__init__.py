"""Scoring: what a model wrote becomes correct or not, and rows of cases become tables.

What a model wrote is hostile text. It is parsed strictly, compared strictly, and never kept here.
"""
