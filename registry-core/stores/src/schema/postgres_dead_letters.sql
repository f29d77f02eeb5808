CREATE TABLE dead_letters (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, endpoint TEXT NOT NULL, document TEXT NOT NULL
);
CREATE UNIQUE INDEX dead_letters_by_id ON dead_letters (tenant, id);
