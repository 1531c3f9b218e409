"""Objects, their kinds, versions, selectors and the errors of asking for them."""
