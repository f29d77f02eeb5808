CREATE TABLE conversations (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
    used_at TEXT COLLATE "C" NOT NULL, size BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);
CREATE INDEX conversations_by_use ON conversations (used_at);

CREATE TABLE responses (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL, previous TEXT COLLATE "C" NOT NULL, model TEXT NOT NULL, created_at TEXT NOT NULL,
    size BIGINT NOT NULL, messages TEXT NOT NULL,
    PRIMARY KEY (id, tenant, user_id),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);
CREATE INDEX responses_by_conversation ON responses (conversation, tenant, user_id);
