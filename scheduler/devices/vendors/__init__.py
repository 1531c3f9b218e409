"""The vendors whose devices HAMi's plugins report, beside NVIDIA: one file each.

Belongs here: ``vendor`` says what a vendor's file says, ``driver`` is the driver of all these devices, ``requests`` reads what
containers request. A file of a vendor is data, and a function only where the vendor is unlike all others. ``table`` lists
them.
"""
