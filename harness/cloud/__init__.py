"""AWS as the operator sees it: found by tag and attachment, ended by the cloud's own word."""
