CREATE TABLE tool_state (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL,
    size INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, space, key)
);
