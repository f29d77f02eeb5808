CREATE TABLE files (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, other_key TEXT COLLATE "C" NOT NULL,
    used_at TEXT COLLATE "C" NOT NULL, size BIGINT NOT NULL, messages TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, key)
);
CREATE INDEX files_by_other_key ON files (tenant, user_id, other_key);
CREATE INDEX files_by_use ON files (used_at, size, tenant, user_id, key);
CREATE INDEX files_by_user ON files (tenant, user_id, used_at, size);
