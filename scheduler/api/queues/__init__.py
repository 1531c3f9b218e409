"""Tenants' queues in the words of other systems: what each is owed, and who waits in it.

Belongs here: the objects of Kueue, read to plain values with errors that name the field.
Does not belong here: any arithmetic of quotas, and what becomes of who waits (tenancy).
"""
