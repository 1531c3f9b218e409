"""The devices of ResourceSlices as columns, and the ResourceClaims that have them.

``inventory`` follows slices, pools and nodes; ``table`` has the columns and ``kinds`` what devices have in common;
``store`` has the claims, who charges them, and what was decided for them and is not written yet; ``extended`` has those
that stand for extended resources. Nothing here chooses a device, and nothing evaluates CEL.
"""
