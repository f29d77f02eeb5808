-- A page of the audit, and the records of a call, are found without a look at all the others.
CREATE INDEX audit_by_tenant ON audit (tenant, position);
CREATE INDEX audit_by_call ON audit (tenant, call_id);
