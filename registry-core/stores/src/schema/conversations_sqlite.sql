CREATE TABLE conversations (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, used_at TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
) WITHOUT ROWID;
CREATE INDEX conversations_by_use ON conversations (used_at);

-- With its rows apart from its keys: messages may have some MiB.
CREATE TABLE responses (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, conversation TEXT NOT NULL, previous TEXT NOT NULL,
    model TEXT NOT NULL, created_at TEXT NOT NULL, size INTEGER NOT NULL, messages TEXT NOT NULL,
    PRIMARY KEY (id, tenant, user_id),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);
CREATE INDEX responses_by_conversation ON responses (conversation, tenant, user_id);
