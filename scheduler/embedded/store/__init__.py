"""Objects, their kinds, versions and selectors, and the errors of requests for them."""
