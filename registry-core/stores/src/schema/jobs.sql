CREATE TABLE jobs (
    tenant TEXT NOT NULL, id TEXT NOT NULL, user_id TEXT NOT NULL, next_run BIGINT NOT NULL, last_run TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX jobs_by_time ON jobs (next_run);
