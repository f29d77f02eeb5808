CREATE TABLE connections (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, server TEXT NOT NULL,
    sealed TEXT NOT NULL, created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, server)
);
