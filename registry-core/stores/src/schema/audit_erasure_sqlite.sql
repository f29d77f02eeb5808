-- What is personal may be taken out of a record, which keeps its place and its hash, and says so.
DROP TRIGGER audit_is_not_changed;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    WHEN NEW.record NOT LIKE '%,"erasure_proof":"%'
    OR (NEW.position, NEW.tenant, NEW.server, NEW.seq, NEW.ts, NEW.user_id, NEW.tool, NEW.call_id, NEW.happened, NEW.previous, NEW.sha256)
    IS NOT (OLD.position, OLD.tenant, OLD.server, OLD.seq, OLD.ts, OLD.user_id, OLD.tool, OLD.call_id, OLD.happened, OLD.previous, OLD.sha256)
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
