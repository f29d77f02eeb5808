-- What is asked of a person, whose records may have to be erased, and of one call does not read the records of all others.
CREATE INDEX audit_by_user ON audit (user_id, tenant, position);
CREATE INDEX audit_by_call ON audit (call_id, tenant);
-- Otherwise all records of a tenant are read and sorted for a page of them.
CREATE INDEX audit_by_tenant ON audit (tenant, position);
