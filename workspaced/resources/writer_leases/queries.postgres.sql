-- PostgreSQL's variants of the statements of leases.

-- hold: find
FOR UPDATE
