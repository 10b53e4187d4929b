"""Problems as templates see them: which members a unit is given, which extents and accesses there are."""
