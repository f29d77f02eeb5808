-- Times and random names are compared byte by byte, whatever the database's language.
CREATE TABLE tools (
    tenant TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE users (
    tenant TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE api_keys (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT NOT NULL, id TEXT NOT NULL, user_id TEXT NOT NULL, sha256 TEXT NOT NULL, delegate BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL, revoked_at TEXT COLLATE "C" NOT NULL
);
CREATE INDEX api_keys_by_sha256 ON api_keys (sha256);
CREATE INDEX api_keys_by_id ON api_keys (tenant, id);

CREATE TABLE revision (number BIGINT NOT NULL);
INSERT INTO revision VALUES (0);
CREATE FUNCTION tell_revision() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_notify('toolrack_revision', NEW.number::text); RETURN NULL; END $$;
CREATE TRIGGER revision_is_told AFTER UPDATE ON revision FOR EACH ROW EXECUTE FUNCTION tell_revision();

CREATE TABLE call_counts (
    tenant TEXT NOT NULL, user_id TEXT NOT NULL, tool TEXT NOT NULL,
    day BIGINT NOT NULL, calls BIGINT NOT NULL,
    last TEXT COLLATE "C" NOT NULL, before TEXT COLLATE "C" NOT NULL, until TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, user_id, tool)
);

CREATE TABLE approvals (
    tenant TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL, call TEXT NOT NULL,
    requested_at TEXT COLLATE "C" NOT NULL, expires_at TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL, answer TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX approvals_by_call ON approvals (call, state);

CREATE TABLE audit (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL, server TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL,
    ts TEXT COLLATE "C" NOT NULL, user_id TEXT NOT NULL, tool TEXT NOT NULL, call_id TEXT NOT NULL, happened TEXT NOT NULL,
    previous TEXT NOT NULL, sha256 TEXT NOT NULL, record TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_by_seq ON audit (tenant, server, seq);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the audit is only ever added to'; END $$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
