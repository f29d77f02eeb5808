CREATE TABLE sessions (
    sha256 TEXT COLLATE "C" PRIMARY KEY, id TEXT COLLATE "C" NOT NULL, tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL, expires_at TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (tenant, user_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
