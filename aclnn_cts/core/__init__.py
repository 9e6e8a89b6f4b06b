"""The objects that cross the rooms, and the facts of the C headers: dtypes, formats, statuses."""
