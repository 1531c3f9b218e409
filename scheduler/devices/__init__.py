"""Devices: what a pod's words about them mean to the kernel that picks them.

Belongs here: one file for each kind of device that a pod can ask. Does not belong here: the table of
devices (``state``) or the arithmetic of the choice (``kernels/devices``).
"""
