"""The resources of `/v1`, one file each. Roles of a route are in its `opt`; errors have one shape (`error_answers`)."""
