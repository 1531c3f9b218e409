"""The objects of Dynamic Resource Allocation, as API objects and as parsed values.

``objects`` are the parts of ResourceSlices, DeviceClasses, DeviceTaintRules and ResourceClaims that are read; ``devices``
and ``requests`` parse them to small immutable values; ``pods`` reads which claims a pod has; ``answers`` is what a claim
gets. ``wanted`` reads what containers request of extended resources, and ``extended`` draws the claim that stands for
these. Nothing here knows which devices are free.
"""
