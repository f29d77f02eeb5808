CREATE TABLE chats (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL, words TEXT NOT NULL, titled_by TEXT NOT NULL, pinned BIGINT NOT NULL, created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL, leaf TEXT NOT NULL, settings TEXT NOT NULL,
    turn TEXT NOT NULL, turn_seen_at TEXT COLLATE "C" NOT NULL, turn_stops BIGINT NOT NULL, size BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);

CREATE TABLE chat_messages (
    tenant TEXT COLLATE "C" NOT NULL, user_id TEXT COLLATE "C" NOT NULL, chat TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
    parent TEXT NOT NULL, created_at TEXT COLLATE "C" NOT NULL, size BIGINT NOT NULL, words TEXT NOT NULL, text TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, chat, id),
    FOREIGN KEY (tenant, user_id, chat) REFERENCES chats (tenant, user_id, id) ON DELETE CASCADE
);
