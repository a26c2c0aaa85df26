"""Who made a commitment and when it existed, beyond what git says: signatures and time stamps.

Both are over one statement a commitment (in-toto Statement v1): the commit and the SHA-256 of each
file that it holds. A signature is a DSSE envelope with ed25519, a time stamp is the reply of an
RFC 3161 authority. Both are optional, stand in the evidence and are checked offline.
"""
