"""Shell that shows the queues of tenants: what each has and uses, who waits in it, and why a workload waits.

Belongs here: which facts are shown, the words for them, the page and the JSON. Does not belong here: what a workload
lacks and who could give quota back, which the engine answers, and the reading of files and clusters.
"""
