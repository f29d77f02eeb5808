CREATE TABLE sessions (
    sha256 TEXT PRIMARY KEY, id TEXT NOT NULL, tenant TEXT NOT NULL, user_id TEXT NOT NULL,
    created_at TEXT NOT NULL, expires_at TEXT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (tenant, user_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
