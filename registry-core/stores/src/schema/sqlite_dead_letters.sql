CREATE TABLE dead_letters (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL, id TEXT NOT NULL, endpoint TEXT NOT NULL, document TEXT NOT NULL
);
CREATE UNIQUE INDEX dead_letters_by_id ON dead_letters (tenant, id);
