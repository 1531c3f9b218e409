"""What-ifs: changes to the objects that were read, before anything is placed.

Belongs here: removed, cordoned and added nodes, scaled workloads, and the pods that lose their node by such a
change. Does not belong here: where these pods go.
"""
