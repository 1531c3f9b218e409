"""Devices: the drivers, each with all that is particular to one kind of device.

Belongs here: what a driver is (``contract``), one file for each, the table of them, and what a pod's words
about devices mean to the kernel that picks them. Does not belong here: the columns of devices (``state``),
the arithmetic of the choice (``kernels/devices``), the texts on the wire (``api``).
"""
