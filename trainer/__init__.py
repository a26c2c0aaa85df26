"""The pinned program that trains, evaluates and converts models. It knows nothing of `harness`."""
