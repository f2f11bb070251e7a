"""The plan of a sync: the changes, the file of the plan, and the execution of the plan."""
