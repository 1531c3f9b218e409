"""Devices: the drivers, each with everything that is particular to one kind of device.

Belongs here: what a driver is (``contract``), one file for each driver, the table of all drivers, and what a pod's
requests for devices mean to the kernel that picks the devices. Does not belong here: the columns of devices (``state``),
the arithmetic of the choice (``kernels/devices``), the texts on the wire (``api``).
"""
