CREATE TABLE connections (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, server TEXT COLLATE "C" NOT NULL,
    sealed TEXT NOT NULL, created_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, user_id, server)
);
