CREATE TABLE chats (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL, words TEXT NOT NULL, titled_by TEXT NOT NULL,
    pinned INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, leaf TEXT NOT NULL, settings TEXT NOT NULL,
    turn TEXT NOT NULL, turn_seen_at TEXT NOT NULL, turn_stops INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
) WITHOUT ROWID;

-- The document, which may have some MiB, comes last: a search reads what is before it.
CREATE TABLE chat_messages (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, chat TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, created_at TEXT NOT NULL,
    size INTEGER NOT NULL, words TEXT NOT NULL, text TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, chat, id),
    FOREIGN KEY (tenant, user_id, chat) REFERENCES chats (tenant, user_id, id) ON DELETE CASCADE
);
