-- What is removed because it is too old leaves its last hash, and a proof.
CREATE TABLE audit_starts (
    tenant TEXT NOT NULL, server TEXT NOT NULL, seq INTEGER NOT NULL, sha256 TEXT NOT NULL, proof TEXT NOT NULL,
    PRIMARY KEY (tenant, server)
) WITHOUT ROWID;
DROP TRIGGER audit_is_not_removed;
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
    WHEN OLD.seq > coalesce((SELECT seq FROM audit_starts WHERE tenant = OLD.tenant AND server = OLD.server), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
