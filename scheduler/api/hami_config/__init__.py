"""HAMi's device configuration: which resources stand for which vendor's devices, and what nodes register.

Belongs here: the texts of HAMi's two ConfigMaps as plain values: ``device-config.yaml`` (``reading``) and the device
plugin's ``config.json`` (``nodes``), with what HAMi's chart writes where nobody has set anything (``chart``). Does not
belong here: what drivers make of the values, and the ConfigMaps as objects.
"""
