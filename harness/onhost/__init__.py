"""What is pushed to a host: starts and ends jobs, keeps the deadline, moves and reads back files.

Imports the standard library and `trainer.contract` only (boto3 when a store needs it).
"""
