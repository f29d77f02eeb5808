-- What is personal may be taken out of a record, which keeps its place and its hash, and says so.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND OLD.seq <= coalesce(
            (SELECT seq FROM audit_starts WHERE tenant = OLD.tenant AND server = OLD.server), 0)
        THEN RETURN OLD; END IF;
        IF TG_OP = 'UPDATE' AND NEW.record LIKE '%,"erasure_proof":"%'
            AND to_jsonb(NEW) - 'record' = to_jsonb(OLD) - 'record'
        THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'the audit is only ever added to';
    END $$;
