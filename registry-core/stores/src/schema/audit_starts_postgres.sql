-- What is removed because it is too old leaves its last hash, and a proof.
CREATE TABLE audit_starts (
    tenant TEXT COLLATE "C" NOT NULL, server TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, sha256 TEXT NOT NULL, proof TEXT NOT NULL,
    PRIMARY KEY (tenant, server)
);
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND OLD.seq <= coalesce(
            (SELECT seq FROM audit_starts WHERE tenant = OLD.tenant AND server = OLD.server), 0)
        THEN RETURN OLD; END IF;
        RAISE EXCEPTION 'the audit is only ever added to';
    END $$;
