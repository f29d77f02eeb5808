CREATE TABLE tools (
    tenant TEXT NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE users (
    tenant TEXT NOT NULL, id TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE TABLE api_keys (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL, id TEXT NOT NULL, user_id TEXT NOT NULL, sha256 TEXT NOT NULL, delegate INTEGER NOT NULL,
    created_at TEXT NOT NULL, revoked_at TEXT NOT NULL
);
CREATE INDEX api_keys_by_sha256 ON api_keys (sha256);
CREATE INDEX api_keys_by_id ON api_keys (tenant, id);

CREATE TABLE revision (number INTEGER NOT NULL);
INSERT INTO revision VALUES (0);

-- Named so that it does not look like the SQL function.
CREATE TABLE call_counts (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, tool TEXT NOT NULL,
    day INTEGER NOT NULL, calls INTEGER NOT NULL, last TEXT NOT NULL, before TEXT NOT NULL, until TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, tool)
) WITHOUT ROWID;

CREATE TABLE approvals (
    tenant TEXT NOT NULL, id TEXT NOT NULL, call TEXT NOT NULL, requested_at TEXT NOT NULL, expires_at TEXT NOT NULL,
    state TEXT NOT NULL, answer TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX approvals_by_call ON approvals (call, state);

CREATE TABLE audit (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL, server TEXT NOT NULL, seq INTEGER NOT NULL,
    ts TEXT NOT NULL, user_id TEXT NOT NULL, tool TEXT NOT NULL, call_id TEXT NOT NULL, happened TEXT NOT NULL,
    previous TEXT NOT NULL, sha256 TEXT NOT NULL, record TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_by_seq ON audit (tenant, server, seq);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
